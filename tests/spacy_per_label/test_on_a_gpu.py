"""What the recognizer asks of a GPU, on a pretended one: no array of numpy's among its own."""

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

from labelwise.train.calibrate import fit
from labelwise.train.checkpoint import State, restore, take_arrays
from labelwise.train.parameters import find_slots, forget_gradients
from tests.conftest import stored
from tests.pretend_gpu import pretended

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
        doc.user_data["labelwise"] = {"uncovered": {}, "gold": [], "rejected": []}
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
    tok2vec: dict[str, Any] = {"width": 16, "depth": 1, "embed_size": 50} | SMALL
    if tiny_bert:
        tok2vec = {"@architectures": "spacy-per-label.Transformer.v1", "name": str(tiny_bert)}
    config = {"model": {"@architectures": "spacy-per-label.Heads.v1", "tok2vec": tok2vec}}
    ner: Any = nlp.add_pipe("per_label", name="ner", config=config)
    for label in "ABC":
        ner.add_label(label)
    nlp.initialize(lambda: make_examples(nlp))
    return nlp


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
    yield fit(nlp, (stored(eg.reference) for eg in make_examples(nlp, 30, 3)))
    np.savez(folder / "arrays.npz", **take_arrays(nlp, sgd))
    restore(folder, State("", updates=[sgd.nr_update[slot.key] for slot in find_slots(nlp)]), nlp, sgd)
    for slot in find_slots(nlp):
        slot.gradient()[...] = slot.gradient() * 0
    yield learn()
    forget_gradients(nlp)
    yield learn()
    again = make_pipeline(tiny_bert)
    again.get_pipe("ner").from_bytes(ner.to_bytes())  # type: ignore[attr-defined]
    yield list(again.pipe(eg.predicted.copy() for eg in examples))


@pytest.mark.parametrize("with_transformer", [False, True])
def test_a_whole_life_asks_for_nothing_that_a_gpu_refuses(request, tmp_path, with_transformer):
    tiny_bert = request.getfixturevalue("tiny_bert") if with_transformer else None
    with pretended():
        first, second, *_ = live(tmp_path, tiny_bert)
    assert second["ner"] < first["ner"]
