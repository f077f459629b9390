import random

import pytest

from labelwise.base.text import text_key
from labelwise.corpus.annotation import annotation_of
from labelwise.sources.normalize import Move
from labelwise.why.find import find
from tests.conftest import Merging, task, write_jsonl
from tests.merge.test_decisions import RIGHT, WRONG, digest
from tests.merge.test_merge_data import LIMITS, patch_merge

NFC, NFD = "Zo\xe9 left", "Zoe\u0301 left"
WAYS = ("{}", "{}\n", " {}", "{}\r\n\r\n", "\xa0{}\u2003")  # as tools write a text


def key(text: str) -> str:
    return text_key(text).hex()


def marked(merging: Merging, out: str = "corpus") -> dict[str, set[tuple[str, str]]]:
    return {
        text: {(text[start:end], label) for start, end, label in annotation_of(doc).accepted}
        for text, (_, doc) in merging.docs(out).items()
    }


def test_the_text_is_the_first_sources_and_the_others_spans_move_there(merging):
    merging.add("z", ["A"], [task("Ann met\nBob .", (0, 3)), task("alone\n", (0, 5))])
    merging.add("b", ["B"], [task(" Ann  met Bob .\r\n", (10, 13), label="B")])
    merging.add("a", ["C"], [task("Ann met Bob .", (0, 11), label="C"), task("alone", (0, 5), label="C")])
    ledger = merging.run()
    assert marked(merging) == {
        "Ann met\nBob .": {("Ann", "A"), ("Bob", "B"), ("Ann met\nBob", "C")},
        "alone\n": {("alone", "A"), ("alone", "C")},
    }
    assert (ledger.same_texts, ledger.texts.total(), ledger.rows) == (3, 2, {"merged": 5})
    same = {text["text"]: text["same"] for text in merging.table("texts")}
    others = sorted([key(" Ann  met Bob .\r\n"), key("Ann met Bob .")])
    assert same == {key("Ann met\nBob ."): others, key("alone\n"): [key("alone")]}
    assert {row["text"] for row in merging.table("rows")} == same.keys()


def test_the_lines_of_a_data_set_keep_their_order(merging):
    texts = ["big cat", "big cat\n", " big cat", "big cat\n", "big cat"]
    spans = [(0, 3), (4, 7), (1, 8), (0, 7), (0, 3)]
    for last in range(1, 6):
        merging.declared.clear()
        merging.add("a", ["A"], [task(*one) for one in zip(texts[:last], spans, strict=False)])
        merging.run(f"{last}")
        [words] = marked(merging, f"{last}").values()
        assert words == {({1: "big", 2: "cat", 5: "big"}.get(last, "big cat"), "A")}
        assert [row["line"] for row in merging.table("rows", f"{last}")] == list(range(1, last + 1))


def test_a_text_without_variants_keeps_its_key_split_and_bytes(merging):
    texts = [WAYS[number % 5].format(f"text  {number}") for number in range(60)]
    merging.add("a", ["A"], [{"text": text, "spans": []} for text in texts])
    ledger = merging.run("before", docs_per_partition=8, dev_ratio=0.2, test_ratio=0.2)
    splits = {text: split for text, (split, _) in merging.docs("before").items()}
    assert (ledger.same_texts, splits.keys()) == (0, {*texts})
    assert {text["text"] for text in merging.table("texts", "before")} == {*map(key, texts)}
    merging.add("b", ["B"], [{"text": f"text {number}\n", "spans": []} for number in range(0, 120, 2)])
    ledger = merging.run("after", docs_per_partition=8, dev_ratio=0.2, test_ratio=0.2)
    after = {text: split for text, (split, _) in merging.docs("after").items()}
    assert (ledger.same_texts, len(after)) == (30, 90)
    assert {text: after[text] for text in texts} == splits


@pytest.mark.parametrize("large", [1, 10**9])
def test_neither_buckets_nor_workers_change_what_is_joined(merging, monkeypatch, large):
    rng = random.Random(0)
    for name in "abc":
        texts = [rng.choice(WAYS).format(f"text {rng.randrange(30)}") for _ in range(45)]
        merging.add(
            name, [name.upper()], [task(text, (text.index("t"), len(text)), label=name.upper()) for text in texts]
        )
    ledger = merging.run("whole", docs_per_partition=10)
    assert ledger.texts.total() + ledger.same_texts > ledger.texts.total() == len(merging.docs("whole")) <= 30
    patch_merge(monkeypatch, WAITING_BYTES=3000, SOURCE_BYTES=500, **dict.fromkeys(LIMITS, large))
    for workers in (1, 2):
        assert merging.run(f"{workers}", docs_per_partition=10, workers=workers) == ledger
        assert merging.files(f"{workers}") == merging.files("whole")


def test_the_first_of_hundreds_of_rows_gives_its_text(merging):
    rows = [task(f"text {number}", (0, 4)) for number in range(300)]
    rows[2], rows[257] = task("big  cat", (0, 3)), task("big cat", (0, 3))
    merging.add("a", ["A"], rows)
    assert merging.run().same_texts == 1
    assert {text for text in merging.docs() if "big" in text} == {"big  cat"}


def test_a_span_that_parts_a_letter_from_its_accent_cannot_be_used(merging):
    merging.add("a", ["A"], [task(NFC, (0, 3))])
    merging.add("b", ["B"], [task(NFD, (0, 4), (0, 3), (3, 9), (5, 9), label="B")])
    ledger = merging.run()
    assert marked(merging) == {NFC: {("Zo\xe9", "A"), ("Zo\xe9", "B"), ("left", "B")}}
    assert ledger.spans["invalid"] == 2
    says = [why for *_, why in merging.problems()]
    assert says[0] == "invalid: [0, 3] separates a letter from its accent, one character in another source"


def test_spans_move_back_and_forth():
    # In one run of characters of the second text, a letter is decomposed: q with a dot has no composed form.
    there, back = Move("\xe9q\u0323x y", "e\u0301q\u0323x\n\ny"), Move("e\u0301q\u0323x\n\ny", "\xe9q\u0323x y")
    assert there.offsets(0, 1) == ((0, 2), True)
    assert there.offsets(1, 4) == ((2, 5), True)
    assert there.offsets(0, 6) == ((0, 8), True)
    assert there.offsets(1, 2)[1] is back.offsets(0, 1)[1] is False
    assert back.offsets(2, 8) == ((1, 6), True)


def test_decisions_about_any_of_the_texts_are_followed(merging):
    first, other = "big cat sat", " big  cat sat\n"
    merging.add("a", ["A"], [task(first, (0, 3))])
    merging.add("b", ["B"], [task(other, (1, 4), (10, 13), label="B")])
    about = {"dataset": "b", "text": key(other), "label": "B", "answer": digest([1, 4], [10, 13])}
    changes = [
        (WRONG, [1, 4], [1, 9]),  # big cat
        (RIGHT, [10, 13], None),
        (WRONG, None, [6, 99]),
    ]
    rows = [about | {"verdict": verdict, "removed": old, "added": new} for verdict, old, new in changes]
    rows.insert(1, {"dataset": "a", "text": key(first), "label": "A", "answer": digest([0, 3]), "verdict": WRONG})
    rows[1] |= {"removed": [0, 3], "added": None}
    write_jsonl(merging.root / "decisions/decisions.jsonl", rows)
    merging.run()
    assert marked(merging) == {first: {("big cat", "B"), ("sat", "B")}}
    decisions = [row for row in merging.table("rows") if row["kind"] == "decision"]
    assert [(row["line"], row["reason"]) for row in decisions] == [
        (1, "corrected"),
        (2, "corrected"),
        (3, "confirmed"),
        (4, "malformed"),
    ]


def test_words_in_a_source_lead_to_the_text_that_has_its_rows(merging):
    merging.add("a", ["A"], [task("Nobody knows Ada", answer="ignore")])
    merging.add("b", ["A"], [task("Nobody knows  Ada\n", answer="ignore"), task("x")])
    merging.run()
    [account] = find(merging.root / "corpus", "Nobody knows", [merging.root / "tasks/datasets.yml"])
    assert [row["dataset"] for row in account.rows] == ["a", "b"]
    assert account.shown == "Nobody knows Ada"
