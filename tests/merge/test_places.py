"""Where the annotation of each text is in the sources, as a merge writes it down."""

import hashlib
import json

from labelwise.corpus.manifest import read_manifest
from labelwise.corpus.places import AnswerPlace, read_places
from labelwise.sources.convert_brat import convert_brat
from labelwise.text import text_key
from tests.conftest import Merging, task
from tests.sources.reading import write


def places(merging: Merging) -> dict[str, list[AnswerPlace]]:
    return {text.key: text.answers for text in read_places(merging.root / "corpus")}


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
    assert places(merging) == {
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


def test_a_brat_document_has_the_lines_of_its_spans(merging):
    folder = merging.root / "tasks" / "brat"
    write(folder / "one.txt", "big cat")
    write(folder / "one.ann", "T1\tB 0 3\tbig\nT2\tA 4 7\tcat\n")
    convert_brat(folder, merging.root / "tasks" / "converted")
    merging.declared.append({"name": "brat", "path": "converted/auto.jsonl", "labels": ["A", "B"]})
    merging.add("c", ["C"], [])
    merging.run()
    ((answer,),) = places(merging).values()
    assert (answer.file, answer.line) == ("auto.jsonl", 1)
    assert sorted(answer.lines) == [(0, 3, "one.ann", 1), (4, 7, "one.ann", 2)]


def test_texts_are_sorted_by_key_and_lines_move_with_their_file(merging):
    """Whatever the partitions and the cache; a text that moves to another line is in the cache as it was."""
    rows = [{"text": f"text {number}"} for number in range(30)]
    merging.add("a", ["A"], rows)
    merging.run(docs_per_partition=3)
    first = merging.files()["places.jsonl"]
    assert [one["key"] for one in merging.lines("places.jsonl")] == sorted(key(row["text"]) for row in rows)
    merging.run(docs_per_partition=100)
    assert merging.files()["places.jsonl"] == first
    write(merging.root / "tasks" / "a.jsonl", rows[::-1])
    merging.run(docs_per_partition=100)
    assert {name: [one.line for one in found] for name, found in places(merging).items()} == {
        key(row["text"]): [30 - number] for number, row in enumerate(rows)
    }
