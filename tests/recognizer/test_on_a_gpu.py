"""What the recognizer asks of a GPU, on a pretended one: no array of numpy's among its own, few tasks, few waits."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Adam

from labelwise.recognizer import per_label
from labelwise.recognizer.transformer import joined
from labelwise.train.calibration import fit
from labelwise.train.checkpoints import State, restore, take_arrays
from labelwise.train.out_of_memory import forget_gradients
from labelwise.train.parameters import find_slots
from labelwise.train.prepared import PreparedText, learn_prepared
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import ROOT
from tests.pretend_gpu import Counts, pretended

SMALL = {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "pretrained_vectors": None,
    "window_size": 1,
    "maxout_pieces": 3,
    "subword_features": True,
}


def make_examples(nlp: Language, count: int = 24, seed: int = 0) -> list[Example]:
    """Texts of up to 40 words, with gold, rejected spans and labels that nobody annotated."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        words = [f"w{rng.integers(50)}" for _ in range(int(rng.integers(1, 40)))]
        doc, size = Doc(nlp.vocab, words=words), len(words)
        gold = [Span(doc, 0, min(2, size), label="A"), *([Span(doc, 5, 6, label="B")] if size > 6 else [])]
        if number % 3:
            doc.ents = gold
        else:
            doc.spans["gold"] = gold
            doc.spans["incorrect_spans"] = [
                Span(doc, start, min(start + 1 + start % 3, size), label="C") for start in range(0, size, 3)
            ]
            doc.user_data["labelwise"] = {"uncovered": {"C": "partial", "B": "none"}, "gold": [], "rejected": []}
        made.append(Example(Doc(nlp.vocab, words=words), doc))
    return made


def make_pipeline(tiny_bert: Path | None = None) -> Language:
    """A recognizer on a transformer, or on a small layer of thinc's."""
    nlp = spacy.blank("en")
    tok2vec = {"width": 16, "depth": 1, "embed_size": 50} | SMALL
    if tiny_bert:
        model = {"@architectures": "spacy-transformers.TransformerModel.v3", "name": str(tiny_bert)}
        nlp.add_pipe("transformer", config={"model": model})
        pooling = {"@layers": "reduce_mean.v1"}
        tok2vec = {"@architectures": "spacy-transformers.TransformerListener.v1", "pooling": pooling}
    model = {"@architectures": "labelwise.PerLabelHeads.v1", "tok2vec": tok2vec}
    ner: Any = nlp.add_pipe("labelwise_per_label", name="ner", config={"model": model})
    for label in "ABC":
        ner.add_label(label)
    nlp.initialize(lambda: make_examples(nlp))
    return nlp


def total(counts: Counts) -> dict[str, int]:
    return {name: sum(counter.values()) for name, counter in vars(counts).items()}


def prepared(joint: Any, ner: Any, examples: list[Example]) -> list[PreparedText]:
    found = zip(examples, ner.targets(examples), strict=True)
    return [PreparedText(joint.wordpieces.of(eg.predicted), known) for eg, known in found]


def live(folder: Path, tiny_bert: Path | None = None) -> Iterator[Any]:
    """All that a recognizer does: what a device would refuse is a TypeError or a ValueError.

    YIELDS (Any): what each part of it gave.
    """
    nlp = make_pipeline(tiny_bert)
    ner: Any = nlp.get_pipe("ner")
    examples, sgd = make_examples(nlp), Adam(0.001, L2=0.01, grad_clip=1.0)

    def learn() -> dict[str, float]:
        losses: dict[str, float] = {}
        nlp.update([*examples, Example(Doc(nlp.vocab), Doc(nlp.vocab))], sgd=sgd, losses=losses, drop=0.1)
        return losses

    yield learn()
    yield learn()
    with nlp.use_params(sgd.averages):
        yield [doc.spans["labels"] for doc in nlp.pipe(eg.predicted.copy() for eg in examples)]
    yield fit(nlp, make_examples(nlp, 30, 3))
    np.savez(folder / "arrays.npz", **take_arrays(nlp, sgd))
    restore(folder, State(updates=[sgd.nr_update[slot.key] for slot in find_slots(nlp)]), nlp, sgd)
    for slot in find_slots(nlp):
        slot.set_gradient(slot.gradient())
    yield learn()
    forget_gradients(nlp)
    ner.add_label("D")
    sgd = Adam(0.001)
    yield learn()
    again = make_pipeline(tiny_bert)
    again.get_pipe("ner").from_bytes(ner.to_bytes())  # type: ignore[attr-defined]
    yield list(again.pipe(eg.predicted.copy() for eg in examples))


@pytest.mark.parametrize("with_transformer", [False, True])
def test_a_whole_life_asks_for_nothing_that_a_gpu_refuses(request, tmp_path, with_transformer):
    tiny_bert = request.getfixturevalue("tiny_bert") if with_transformer else None
    with pretended() as counts:
        first, second, *_ = live(tmp_path, tiny_bert)
    assert second["ner"] < first["ner"]
    assert total(counts)["launches"]


@pytest.mark.parametrize("texts", [8, 24])
def test_a_step_asks_as_often_for_many_texts_as_for_few(tiny_bert, texts):
    """Besides the transformer and the optimizer. One waits for the loss; thinc's maxout checks its input."""
    with pretended() as counts:
        nlp = make_pipeline(tiny_bert)
        ner: Any = nlp.get_pipe("ner")
        with joined(nlp) as joint:
            batch = prepared(joint, ner, make_examples(nlp, texts))
            learn_prepared(nlp, batch, drop=0.1, losses={})  # with gradients to add to
            counts.clear()
            learn_prepared(nlp, batch, drop=0.1, losses={})
    assert total(counts) == {"launches": 102, "copies": 17, "waits": 2}


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_a_training(demo_corpus, tiny_bert, tmp_path, monkeypatch, precision):
    for place in ("train", "evaluate"):
        monkeypatch.setattr(f"labelwise.{place}.run.use_gpu", lambda gpu_id: None)
    overrides = {"components.transformer.model.name": str(tiny_bert), "training.max_steps": 4}
    overrides |= {"training.eval_frequency": 2, "components.transformer.model.precision": precision}
    with pretended() as counts:
        config = ROOT / "configs" / "gpu.cfg"
        train_pipeline(Recipe(config, demo_corpus, overrides=overrides), tmp_path / "model", tmp_path / "curve.tsv")
        assert total(counts)["launches"] > 4 * 100
    assert spacy.load(tmp_path / "model")("Ann met Bob.").text


MIXED = {  # what is in place of what
    "a table of another kind": ("Y = ops.alloc_f((len(number)", "Y = np.zeros((len(number)"),
    "divisors that stay on the CPU": ("divisors = ops.asarray(", "divisors = np.asarray("),
    "sums on the CPU": ("sums = ops.alloc_f((len(lengths),", "sums = np.zeros((len(lengths),"),
    "a gradient on the CPU": ("ops.as_contig(gradient.reshape(", "ops.to_numpy(gradient.reshape("),
    "a part that isn't contiguous": ("ops.seq2col(apart(X),", "ops.seq2col(apart(X)[:, ::-1],"),
    "weights of an added head on the CPU": ("new = output.ops.alloc_f(", "new = np.zeros("),
    "logits that aren't fetched": ("flat = self.model.ops.to_numpy(", "flat = np.asarray("),
    "a mask on the CPU": ("ops.asarray(known[:, :, None])", "known[:, :, None]"),
    "log-probabilities that aren't fetched": ("ops.to_numpy(log_p.reshape", "np.asarray(log_p.reshape"),
    "what is added on the CPU": ("ops.asarray(added)", "added"),
}


@pytest.mark.parametrize("slip", MIXED)
def test_what_mixes_arrays_is_seen(tmp_path, slip):
    right, wrong = MIXED[slip]
    source = Path(per_label.__file__).read_text(encoding="utf8")
    assert source.count(right) == 1
    own = dict(vars(per_label))
    exec(compile(source.replace(right, wrong), per_label.__file__, "exec"), vars(per_label))
    try:
        with pretended(), pytest.raises((TypeError, ValueError), match=r"numpy|NumPy|contiguous"):
            list(live(tmp_path))
    finally:
        vars(per_label).update(own)
