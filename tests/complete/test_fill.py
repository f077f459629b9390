"""Filling one text: gold is never overwritten, what was rejected is never filled in, and all else is counted."""

from pathlib import Path

import pytest
from spacy.lang.en import English
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

from labelwise.complete.fill import Candidate, fill
from labelwise.corpus.annotation import GOLD, INCORRECT, set_user_data
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.docbin_writer import encode_docs, write_docs

END = "white space at an end"
WORDS = ["Ann", "saw", "old", "Rome", "with", "Bob", "Lee", "today"]


@pytest.fixture
def stored(tmp_path: Path) -> StoredDoc:
    """ "Ann" is PER, "Lee" was rejected as one, and gold from the middle of "today" has no token boundaries."""
    doc = Doc(Vocab(), words=WORDS)
    gold = [(0, 3, "PER"), (31, 33, "PER")]
    ann = Span(doc, 0, 1, "PER")
    doc.set_ents([ann], missing=[doc[n : n + 1] for n in range(1, 8)])
    doc.spans[GOLD] = [ann]
    doc.spans[INCORRECT] = [Span(doc, 6, 7, "PER")]
    set_user_data(doc, {span: ["a"] for span in gold}, [(25, 28, "PER")], {"PER": "partial", "LOC": "none"}, ["a"])
    write_docs([encode_docs([doc])], tmp_path / "a.spacy")
    [read] = read_stored_docs(tmp_path / "a.spacy")
    return read


def tags(doc: Doc) -> str:
    return " ".join(token.ent_iob_ + (token.ent_type_ and f"-{token.ent_type_}") or "?" for token in doc)


@pytest.mark.parametrize(
    ("candidates", "implausible", "outcomes", "expected"),
    [
        ([], [], [], "B-PER O O O O O O ?"),
        ([(2, 4, "LOC", 0.9)], [], ["filled"], "B-PER O B-LOC I-LOC O O O ?"),
        ([(2, 4, "LOC", 0.9)], ["LOC"], ["not plausible"], "B-PER O O O O O O ?"),
        ([(0, 2, "LOC", 0.9)], [], ["overlaps gold"], "B-PER O O O O O O ?"),
        ([(7, 8, "LOC", 0.9)], [], ["overlaps gold"], "B-PER O O O O O O ?"),
        ([(6, 7, "PER", 0.9)], [], ["rejected"], "B-PER O O O O O O ?"),
        ([(6, 7, "LOC", 0.9)], [], ["filled"], "B-PER O O O O O B-LOC ?"),
        ([(5, 7, "PER", 0.9)], [], ["filled"], "B-PER O O O O B-PER I-PER ?"),
        (
            [(2, 4, "LOC", 0.7), (3, 4, "PER", 0.95), (5, 6, "PER", 0.6)],
            [],
            ["overlaps another", "filled", "filled"],
            "B-PER O O B-PER O B-PER O ?",
        ),
    ],
)
def test_what_becomes_of_what_was_found(stored, candidates, implausible, outcomes, expected):
    filled = fill(stored, [Candidate(*each) for each in candidates], implausible, Vocab())
    assert filled.outcomes == outcomes
    assert tags(filled.doc) == expected
    kept = [each for each, outcome in zip(candidates, outcomes, strict=True) if outcome == "filled"]
    group = filled.doc.spans["completed"]
    assert [(span.start, span.end, span.label_) for span in group] == [each[:3] for each in kept]
    assert group.attrs["scores"] == [each[3] for each in kept]
    # What the merge said stays: gold, rejected, and what the text isn't complete for.
    assert [(span.start, span.end) for span in filled.doc.spans["gold"]] == [(0, 1)]
    assert [(span.start, span.end) for span in filled.doc.spans["incorrect_spans"]] == [(6, 7)]
    assert filled.doc.user_data["labelwise"]["uncovered"] == {"PER": "partial", "LOC": "none"}


@pytest.mark.parametrize(("start", "end", "outcome"), [(0, 2, END), (1, 3, END), (1, 2, END), (0, 3, "filled")])
def test_white_space_at_an_end_is_not_filled_in_as_ner_cannot_learn_it(tmp_path, start, end, outcome):
    doc = Doc(Vocab(), words=["5", "\u00a0", "mM"], spaces=[False] * 3)
    doc.set_ents([], default="missing")
    set_user_data(doc, {}, [], {"LOC": "none"}, ["a"])
    write_docs([encode_docs([doc])], tmp_path / "a.spacy")
    [read] = read_stored_docs(tmp_path / "a.spacy")
    filled = fill(read, [Candidate(start, end, "LOC", 0.9)], [], Vocab())
    assert filled.outcomes == [outcome]
    # spaCy's ner finds the moves that lead to these entities.
    nlp = English()
    ner = nlp.add_pipe("ner")
    ner.add_label("LOC")
    nlp.update(
        [Example(Doc(nlp.vocab, words=["5", "\u00a0", "mM"], spaces=[False] * 3), filled.doc)], sgd=nlp.initialize()
    )
