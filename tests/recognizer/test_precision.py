"""Transformers in half precision on the CPU: close to single precision, by real autocasting and a real scaler."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
import torch
from spacy.training.initialize import init_nlp
from thinc.api import ArgsKwargs, PyTorchShim

from labelwise.common.errors import InputError
from labelwise.recognizer.precision import DTYPES, GradScaler, PrecisionShim
from labelwise.train.pipeline import read_config
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import NO_DROPOUT, ROOT

GPU = ROOT / "configs" / "gpu.cfg"
MODEL = "components.transformer.model"
TEXTS = ["Heat 5 mL to 60degC, said Zoë Barton of Mercury Labs on 3 May 1999.", "Adam Smithers paid 30 EUR."]


def overrides_for(precision: str, bert: Path, scale: float = 16.0) -> dict:
    return {
        "training.dropout": 0.0,
        "training.batcher.size": 2500,
        f"{MODEL}.name": str(bert),
        f"{MODEL}.precision": precision,
        f"{MODEL}.grad_scaler_config.init_scale": scale,
        f"{MODEL}.transformer_config": NO_DROPOUT,
        "components.ner.update_with_oracle_cut_size": 0,
        "training.optimizer.learn_rate.initial_rate": 0.002,
        "training.optimizer.learn_rate.warmup_steps": 10,
        "training.max_steps": 59,
        "training.eval_frequency": 59,
        "corpora.dev.limit": 2,
    }


@pytest.fixture(scope="module")
def trained(demo_corpus, tiny_bert, tmp_path_factory) -> dict[str, Path]:
    """Folders with `model` and `c.tsv` of 60 updates, by precision."""
    root = tmp_path_factory.mktemp("precision")
    for name in ("fp32", "bf16", "fp16"):
        overrides = overrides_for(name, tiny_bert)
        train_pipeline(
            Recipe(GPU, demo_corpus, overrides=overrides, recognizer="ner"),
            root / name / "model",
            root / name / "c.tsv",
        )
    return {name: root / name for name in ("fp32", "bf16", "fp16")}


def curve(folder: Path) -> list[dict[str, str]]:
    header, *rows = [line.split("\t") for line in (folder / "c.tsv").read_text().splitlines()]
    return [dict(zip(header, row, strict=True)) for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("loss", ["loss_ner", "loss_transformer"])
@pytest.mark.long
def test_half_precision_has_the_losses_of_single_precision(loss, precision, trained):
    """Of 60 updates by three parts each; the transformer's loss, of the gradients that it is given, tells more."""
    half, single = (sum(float(row[loss]) for row in curve(trained[name])) for name in (precision, "fp32"))
    assert half == pytest.approx(single, rel=0.005)


@pytest.mark.slow
@pytest.mark.long
def test_the_curve_has_the_scaler_in_fp16_alone(trained):
    assert [(row["grad_scale"], row["skipped_steps"]) for row in curve(trained["fp16"])] == [("16", "0")]
    assert "grad_scale" not in curve(trained["fp32"])[0]
    assert "grad_scale" not in curve(trained["bf16"])[0]


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.long
def test_the_pipeline_loads_without_labelwise(precision, trained, tmp_path):
    code = (
        "import json, sys\n"
        "sys.modules['labelwise'] = None  # importing it fails, if it is installed\n"
        "import spacy\n"
        "nlp = spacy.load(sys.argv[1])\n"
        "print(json.dumps([[[e.start, e.end, e.label_] for e in doc.ents] for doc in nlp.pipe(sys.argv[2:])]))\n"
    )
    command = [sys.executable, "-c", code, trained[precision] / "model", *TEXTS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    here = spacy.load(trained[precision] / "model")
    expected = [[[ent.start, ent.end, ent.label_] for ent in doc.ents] for doc in here.pipe(TEXTS)]
    assert json.loads(done.stdout.splitlines()[-1]) == expected
    model = here.config["components"]["transformer"]["model"]
    assert (model["@architectures"], model["mixed_precision"], "precision" in model) == (
        "spacy-transformers.TransformerModel.v3",
        precision == "fp16",
        False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("training", [False, True])
def test_layers_compute_in_the_precision_and_the_rest_is_single(precision, training, demo_corpus, tiny_bert):
    nlp = init_nlp(read_config(Recipe(GPU, demo_corpus, overrides=overrides_for(precision, tiny_bert))))
    model = nlp.get_pipe("transformer").model
    module = model.layers[0].shims[0]._model
    seen = set()
    module.encoder.layer[0].output.dense.register_forward_hook(lambda layer, given, got: seen.add(got.dtype))
    docs = [nlp.make_doc(text) for text in TEXTS]
    output = model.begin_update(docs)[0] if training else model.predict(docs)
    assert seen == {DTYPES.get(precision, torch.float32)}
    assert {tensor.dtype for tensor in module.parameters()} == {torch.float32}
    assert {str(tensor.dtype) for tensor in output.model_output.values()} <= {"float32", "torch.float32"}


class Tiny(torch.nn.Module):
    """A linear layer for a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, rows):
        return {"last": self.layer(rows)}


def shim_of(precision: str, scale: float = 1024.0) -> PrecisionShim:
    torch.manual_seed(0)
    shim = PrecisionShim.__new__(PrecisionShim)
    PyTorchShim.__init__(shim, Tiny())  # HFShim's own would load a tokenizer
    shim.dtype = DTYPES.get(precision)
    shim._grad_scaler = GradScaler(enabled=precision == "fp16", init_scale=scale)
    return shim


def backward(shim: PrecisionShim, rows: torch.Tensor) -> None:
    output, backprop = shim.begin_update(ArgsKwargs((rows,), {}))
    backprop(ArgsKwargs((output["last"],), {"grad_tensors": (torch.ones_like(output["last"]),)}))


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_gradients_of_the_parts_of_a_batch_add_up(precision):
    """The bias has a gradient of 1 for each row, exactly, in any precision."""
    shim = shim_of(precision)
    for rows in (2, 3, 4):
        backward(shim, torch.ones(rows, 4))
    gradients = {}

    def no_step(key, value, gradient):
        gradients[key[1]] = gradient.tolist()
        return value, gradient

    shim.finish_update(no_step)
    assert gradients["layer.bias"] == [9.0] * 3


def test_the_scale_is_halved_and_the_step_skipped_on_an_overflow():
    shim = shim_of("fp16", scale=1e20)
    before = shim._model.layer.bias.tolist()

    def no_step(*given):
        raise AssertionError

    for number in (1, 2):
        backward(shim, torch.ones(2, 4))
        shim.finish_update(no_step)
        assert shim._grad_scaler._scale.item() == pytest.approx(1e20 / 2**number)
        assert shim._grad_scaler.skipped == number
    assert shim._model.layer.bias.tolist() == before


def test_a_step_without_overflow_is_made():
    shim = shim_of("fp16")
    backward(shim, torch.ones(2, 4))
    made = []
    shim.finish_update(lambda key, value, gradient: (made.append(key[1]), (value, gradient))[1])
    assert made == ["layer.weight", "layer.bias"]
    assert (shim._grad_scaler.skipped, shim._grad_scaler._scale.item()) == (0, 1024.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("precision", "fp8", "'fp8': give fp32, fp16 or bf16"),
        ("grad_scaler_config.init_scale", 1024, "1024 isn't a float"),
    ],
)
def test_wrong_settings(name, value, message, demo_corpus, tiny_bert):
    overrides = {**overrides_for("fp16", tiny_bert), f"{MODEL}.{name}": value}
    with pytest.raises(InputError, match=message):
        init_nlp(read_config(Recipe(GPU, demo_corpus, overrides=overrides)))
