"""Where the annotation of each text is in the sources, as a merge writes it down."""

import hashlib
import json

from labelwise.corpus.manifest import read_manifest
from labelwise.corpus.places import AnswerPlace, read_places
from labelwise.text import text_key
from tests.conftest import task


def key(text: str) -> str:
    return text_key(text.encode()).hex()


def digest(*spans: list[int]) -> str:
    return hashlib.blake2b(json.dumps(spans, separators=(",", ":")).encode(), digest_size=6).hexdigest()


def test_each_answer_that_may_count_is_there_with_its_line_and_its_annotator(merging):
    """The older of two answers, too; not one that is ignored, rejected, of another interface, or about a text alone."""
    cat, big = (4, 7), (0, 3)
    rows = [
        task("one", _annotator_id="ann"),
        task("big cat", answer="ignore"),
        task("one", _session_id="bob"),
        task("three", answer="reject"),
        task("big cat", (3, 7), _timestamp=1),
        task("big cat", (3, 7), big, _timestamp=2),
        task("one", _view_id="classification"),
    ]
    merging.add("a", ["A"], rows)
    both = task("big cat", cat, big, (*big, "B"), (0, 7, "A", "reject"))
    merging.add("b", ["B", "A"], [both], kind="complete")
    judged = [task("big cat", cat, _view_id="ner", answer=answer) for answer in ("accept", "reject")]
    merging.add("c", ["A"], judged)
    merging.run()
    corpus = merging.root / "corpus"
    assert read_manifest(corpus).declared == {"a": ("A",), "b": ("B", "A"), "c": ("A",)}
    two = digest([0, 3], [4, 7])
    assert {text.key: text.answers for text in read_places(corpus)} == {
        key("one"): [
            AnswerPlace("a", "a.jsonl", 1, "ann", digests={}),
            AnswerPlace("a", "a.jsonl", 3, "bob", digests={}),
        ],
        key("big cat"): [
            AnswerPlace("a", "a.jsonl", 5),
            AnswerPlace("a", "a.jsonl", 6, digests={"A": two}),
            AnswerPlace("b", "b.jsonl", 1, digests={"A": two, "B": digest([0, 3])}),
            AnswerPlace("c", "c.jsonl", 1, judged=[(4, 7)]),
            AnswerPlace("c", "c.jsonl", 2, judged=[(4, 7)], digests={}),
        ],
    }
