import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labelwise.base.errors import InputError
from labelwise.corpus.columns import OWN, Columns
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import read_manifest
from labelwise.corpus.tables import ROWS, SCHEMAS, SPANS, read_groups
from labelwise.merge import account, commit
from tests.conftest import Merging, task, write_jsonl

LABELS = ["A", "B", "C"]
LIMITS = ("READ_BYTES", "MAX_RANGE_BYTES", "MAX_FORMS")  # of what a job holds


def random_datasets(merging: Merging, seed: int, texts: int = 60) -> None:
    """Write three datasets, a label each, with answers of all kinds and some bad rows."""
    rng = random.Random(seed)
    words = ["big", "cat", "sat", "60degC", "mat", "the"]
    corpus = [f"{i} " + " ".join(rng.choices(words, k=8)) for i in range(texts)]
    for label in LABELS:
        rows: list[Any] = []
        for text in rng.sample(corpus, texts * 3 // 4) + rng.sample(corpus, texts // 10):
            spans = []
            for _ in range(rng.randint(0, 3)):
                start = rng.randrange(len(text) - 1)
                spans.append((start, rng.randint(start + 1, min(len(text), start + 9))))
            choice = rng.choices(["accept", "reject", "ignore"], [8, 1, 1])[0]
            rows.append(task(text, *spans, label=label, answer=choice, _view_id="ner_manual"))
        rows.insert(3, "{oops")
        rows.insert(5, {"text": rng.choice(corpus), "spans": "no list"})
        merging.add(label.lower(), [label], rows, expect_losses=True)


def patch_merge(monkeypatch: pytest.MonkeyPatch, **values: Any) -> None:
    for name, value in values.items():
        modules = [module for key, module in sys.modules.items() if key.startswith("labelwise.merge.")]
        having = [module for module in modules if hasattr(module, name)]
        assert having, name
        for module in having:
            monkeypatch.setattr(module, name, value)


@pytest.mark.guarantee("same-bytes")
def test_bytes_do_not_depend_on_the_time_zone(merging, monkeypatch):
    """Label Studio's times without a zone are in UTC, as Prodigy's: 22:16 is before 22:30 everywhere."""
    span = {"type": "labels", "value": {"start": 0, "end": 3, "labels": ["A"]}}
    annotation = {"result": [span], "completed_by": 1, "updated_at": "2021-03-09T22:16:08"}
    merging.add("late", ["A"], [task("one cat", _view_id="ner_manual", _timestamp=1615329000)], annotator="ann")
    merging.add("studio", ["A"], [], path="studio.json", annotator={1: "ann"})
    studio = [{"id": 1, "data": {"text": "one cat"}, "annotations": [annotation]}]
    (merging.root / "tasks/studio.json").write_text(json.dumps(studio))
    digests = []
    for zone in ("UTC", "America/New_York", "Asia/Kolkata"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert merging.run(zone).spans == {"in superseded task": 1}
        digests.append(merging.files(zone))
    monkeypatch.undo()
    time.tzset()
    assert digests[0] == digests[1] == digests[2]


@pytest.mark.guarantee("moved-splits")
def test_splits_depend_on_nothing_but_the_text(merging):
    def splits(out: str, **settings) -> dict[str, str]:
        merging.run(out, dev_ratio=0.2, test_ratio=0.2, near_duplicates="off", **settings)
        return {text: split for text, (split, _) in merging.docs(out).items()}

    rows = [{"text": f"text {i}", "spans": [], "meta": {"doc": f"d{i // 10}"}} for i in range(120)]
    merging.add("a", ["A"], rows[:60])
    few = splits("few")
    merging.add("b", ["B"], rows)
    more = splits("more", docs_per_partition=30)
    assert few.items() <= more.items()
    shares = Counter(more.values())
    assert 10 < shares["dev"] < 40
    assert 10 < shares["test"] < 40
    assert more != splits("salted", split_salt="other")
    by_document = splits("by_document", split_by="doc")
    assert len({(row["meta"]["doc"], by_document[row["text"]]) for row in rows}) == 12, "one split for each document"


def test_the_manifest_tells_what_there_is(merging):
    merging.add("a", ["A"], [task(f"text {i}") for i in range(40)])
    merging.run(docs_per_partition=10, test_ratio=0.5)
    manifest = read_manifest(merging.root / "corpus")
    assert manifest.partitions.keys() == {path for path in merging.files() if path.endswith(".spacy")}
    assert manifest.datasets == {"a": 40}
    assert sum(split.texts for split in manifest.splits.values()) == 40
    merging.run("again", docs_per_partition=3, test_ratio=0.5, dev_ratio=0.3)
    merging.run("other", docs_per_partition=10, test_ratio=0.4)
    again, other = (read_manifest(merging.root / out).splits["test"].digest for out in ("again", "other"))
    assert again == manifest.splits["test"].digest != other


@pytest.mark.guarantee("one-corpus")
def test_a_corpus_that_a_merge_is_replacing_is_refused_and_can_be_merged_again(merging):
    """Its manifest is deleted first and written last; test_files.py kills it at each step."""
    random_datasets(merging, 2)
    merging.run()
    whole = merging.files()
    (merging.root / "corpus/manifest.json").unlink()
    for read in (read_manifest, lambda corpus: list(read_stored_docs(corpus / "train/part-00000.spacy"))):
        with pytest.raises(InputError, match=r"manifest\.json: there is no such file; run the merge to completion"):
            read(merging.root / "corpus")
    for path in ("corpus", "corpus/train", "corpus/train/*.spacy", "corpus/train/part-00000.spacy"):
        other = Merging(merging.root / "other")
        other.add("a", ["A"], [], path=str(merging.root / path))
        with pytest.raises(InputError, match=r"manifest\.json: there is no such file; run the merge to completion"):
            other.run()
    merging.run()
    assert merging.files() == whole


@pytest.mark.parametrize("large", [1, 10**9])
def test_how_many_buckets_there_are_changes_nothing(merging, monkeypatch, large):
    random_datasets(merging, 1, texts=30)
    # Answers without a time, so lines decide, with many lines between them; and problems at the end.
    rows = [task("0 big", (0, 1)), *({"text": f"t {i}"} for i in range(50)), {"text": "0 big"}, "", "{oops"]
    merging.add("again", ["A"], [*rows, {"text": "x", "spans": [{"start": 9}]}])
    ledger = merging.run("whole", docs_per_partition=10)
    patch_merge(monkeypatch, WAITING_BYTES=3000, SOURCE_BYTES=500, **dict.fromkeys(LIMITS, large))
    assert merging.run("many", docs_per_partition=10) == ledger
    assert merging.files("many") == merging.files("whole")
    problems = [problem for problem in merging.problems("many") if problem[0] == "again"]
    assert sorted((problem[2], problem[3].partition(" (")[0]) for problem in problems) == [
        (54, "bad JSON: object keys must be strings"),
        (55, "invalid: None 9 None: no end, no label"),
    ]
    assert ledger.spans["in superseded task"] >= 1


def test_long_texts_make_more_partitions_and_one_that_would_take_gigabytes_is_counted(merging, monkeypatch):
    merging.add("a", ["A"], [task(f"{i} " + "long text " * 100, (0, 1), (0, 9999)) for i in range(40)])
    merging.run("few", docs_per_partition=40)
    merging.add("b", ["A"], [task("one " * 400, (0, 3), (0, 99))])
    patch_merge(monkeypatch, TEXT_BYTES=10_000, MAX_TEXT_CHARS=1500)
    ledger = merging.run("many", docs_per_partition=40)
    few, many = ([name for name in merging.files(out) if name.startswith("train/")] for out in ("few", "many"))
    assert len(few) == 1
    assert 4 <= len(many) <= 8, "40 KB of text, 10 KB in a partition, a power of two of them"
    assert (ledger.rows, ledger.spans.total()) == (Counter({"merged": 40, "malformed": 1}), 80)
    why = "malformed: a text of 1,600 characters; cut it into texts of 1,500 at most"
    assert [problem for problem in merging.problems("many") if problem[0] == "b"] == [("b", "b.jsonl", 1, why)]


@pytest.mark.parametrize("large", [10**9, 2000], ids=["at once", "cut again"])
def test_many_sources_and_a_text_with_thousands_of_answers_are_merged(large, merging, monkeypatch):
    for name in (f"s{number}" for number in range(300)):
        rows = [task(f"text {name}", (0, 4)), task("the same text", (0, 3))]
        write_jsonl(merging.root / f"tasks/{name}.jsonl", rows)
        merging.declared.append({"name": name, "path": f"{name}.jsonl", "labels": ["A"]})
    merging.add("often", ["A"], [task("the same text", (4, 8), _timestamp=n) for n in range(4000)])
    patch_merge(monkeypatch, MAX_RANGE_BYTES=large)
    ledger = merging.run()
    assert (ledger.rows.total(), ledger.spans.total()) == (4600, 4600)
    assert ledger.rows == {"merged": 601, "superseded": 3999}
    assert len(merging.table("texts")) == 301


def test_rows_without_a_text_are_counted_by_dataset_and_apart_in_the_tables(merging):
    merging.add("a", ["A"], [task("one", (0, 3)), "{oops", task("two", _view_id="classification"), {"text": 3}])
    merging.add("b", ["A"], [task("one", (0, 3)), task("three", answer="ignore")])
    ledger = merging.run()
    assert {name: counts["unused"] for name, counts in ledger.datasets.items()} == {"a": 3, "b": 0}
    groups = [{*group.rows["text"].to_pylist()} for group in read_groups(merging.root / "corpus")]
    assert [None in keys for keys in groups] == [False, True]
    assert groups[-1] == {None}


@pytest.mark.guarantee("outcomes")
@pytest.mark.parametrize(
    ("schemas", "says"),
    [
        ([ROWS, SPANS], r"a\.jsonl:7: 9 rows and 9 spans were read, and 8 and 8 have an outcome; please report this"),
        ([SPANS], r"a\.jsonl: 9 rows and 9 spans were read, and 9 and 8 have an outcome; please report this"),
    ],
)
def test_an_account_that_does_not_balance_is_an_error(merging, monkeypatch, schemas, says):
    """As if a bug lost the row of line 7, or its span."""
    merging.add("a", ["A"], [task(f"text {number}", (0, 4)) for number in range(9)])
    read_batches = account.read_batches

    def lose(file: Path) -> Iterator[Any]:
        for batch in read_batches(file):
            batches = []
            for columns, (table, schema) in zip(batch, SCHEMAS.items(), strict=True):
                rows = [*zip(*columns.own, strict=True)]
                if schema in schemas:
                    rows = [row for row in rows if row[OWN[table].index("line")] != 7]
                batches.append(Columns([*zip(*rows, strict=True)], columns.shared))
            yield batches

    monkeypatch.setattr(commit, "read_batches", lose)
    with pytest.raises(RuntimeError, match=says):
        merging.run()
