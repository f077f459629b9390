import tracemalloc

import msgspec
import pytest
from pyarrow import parquet

from labelwise.base.errors import InputError
from labelwise.base.parallel import no_progress
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions
from labelwise.evaluate import rows as rows_module
from labelwise.evaluate.evaluate_pipeline import collect
from labelwise.evaluate.rows import digest_forms, gold_of, make_rows
from labelwise.evaluate.scores import Mistakes
from labelwise.evaluate.scoring import measure
from labelwise.evaluate.tables import Tables
from tests.conftest import task
from tests.evaluate.test_scoring import keyed, make_doc, write
from tests.evaluate.written import InTrain


def rows_of(tables: Tables) -> list[dict]:
    return parquet.read_table(tables.pairs).to_pylist()


def test_each_text_has_a_row_and_each_pair_too(tmp_path):
    gold = [(0, 3, "A"), (4, 7, "A"), (8, 11, "A"), (12, 14, "A")]
    predicted = [(0, 3, "A"), (4, 6, "A"), (8, 11, "B"), (15, 17, "B"), (18, 20, "C")]
    unknown = make_doc([(0, 3, "A")], uncovered={"A": "none", "B": "partial"})
    docs = keyed([make_doc(predicted, gold, doc="a.txt"), unknown])
    tables = write(tmp_path, docs)
    texts = parquet.read_table(tables.texts).to_pylist()
    assert [(row["doc"], row["split"], row["words"], row["partial"], row["unknown"], row["seen"]) for row in texts] == [
        ("a.txt", "test", 6, [], [], None),
        ("", "test", 6, ["B"], ["A"], None),
    ]
    rows = rows_of(tables)
    assert [
        (row["kind"], row["gold_text"] or row["predicted_text"], row["gold_label"], row["predicted_label"])
        for row in rows
    ] == [
        ("right", "big", "A", "A"),
        ("boundaries", "cat", "A", "A"),
        ("label", "sat", "A", "B"),
        ("missed", "on", "A", None),
        ("spurious", "60", None, "B"),
        ("unscored", "eg", None, "C"),
        ("unscored", "big", None, "A"),
    ]
    assert (rows[1]["before"], rows[1]["after"], rows[1]["predicted_text"]) == ("big ", " sat on 60degC mat", "ca")
    metrics = measure(tables, ["A", "B"])
    causes = {"found": 1, "boundaries": 1, "label": 1, "unseen": 1}
    assert metrics.unscored == 2
    assert metrics.mistakes == {
        "A": Mistakes(right=1, missed=1, boundaries=1, label=1, unscored=1, causes=causes, confused={"B": 1}),
        "B": Mistakes(spurious=1, taken=1),
    }


def test_rows_take_the_memory_of_a_few_texts_and_their_number_changes_no_byte(tmp_path, monkeypatch):
    spans = [(start, end, "A") for start in range(17) for end in range(start + 1, 18) if (start + end) % 5 == 0]
    docs, peaks = keyed([make_doc(spans, spans[1:], doc=f"{number}.txt") for number in range(400)]), {}
    for number in (100, 400):
        tracemalloc.start()
        make_rows(((doc, {}) for doc in docs[:number]), "test", ["A"])
        peaks[number] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks[400] < 1.5 * peaks[100]
    digest = write(tmp_path, docs).digest()
    monkeypatch.setattr(rows_module, "CHUNK", 10_000)
    assert write(tmp_path, docs).digest() == digest


@pytest.mark.parametrize(
    ("predicted", "gold", "other", "cause"),
    [
        ([(0, 7, "A")], InTrain(0, 0), InTrain(), "found"),
        ([], InTrain(3, 3), InTrain(), "seen"),
        ([], InTrain(3, 4), InTrain(), "inconsistent"),
        ([], InTrain(0, 0), InTrain(), "unseen"),
        ([], InTrain(0, 4), InTrain(), "unseen"),
        ([], InTrain(0, 5), InTrain(), "unannotated"),
        ([], InTrain(1, 20), InTrain(), "unannotated"),
        ([], InTrain(1, 20, 9, "B"), InTrain(), "unannotated"),
        ([], InTrain(1, 20, 10, "B"), InTrain(), "other_label"),
        ([], InTrain(0, 4, 4, "B"), InTrain(), "unseen"),
        ([], InTrain(1, 19), InTrain(), "inconsistent"),
        ([(0, 3, "A")], InTrain(0, 100), InTrain(1), "boundaries"),
        ([(0, 7, "B")], InTrain(2, 0), InTrain(1), "label"),
        ([(0, 3, "A")], None, InTrain(1), "misaligned"),
    ],
)
def test_each_gold_span_has_one_cause(predicted, gold, other, cause, tmp_path):
    in_train = dict.fromkeys(predicted, other) | {(0, 7, "A"): gold}
    (row,) = rows_of(write(tmp_path, keyed([make_doc(predicted, [(0, 7, "A")])]), in_train))
    assert row["cause"] == cause


@pytest.mark.parametrize(("train", "cause"), [(InTrain(9, 0), "overlapped"), (None, "misaligned")])
def test_a_missed_span_may_be_overlapped_by_the_prediction_of_another(train, cause, tmp_path):
    """It is nested in a span that was found."""
    doc = make_doc([(0, 7, "A")], [(0, 7, "A"), (4, 7, "B"), (8, 11, "B")])
    whole, nested, beside = rows_of(write(tmp_path, keyed([doc]), {(4, 7, "B"): train}))
    assert [(row["kind"], row["cause"]) for row in (whole, nested, beside)] == [
        ("right", "found"),
        ("missed", cause),
        ("missed", "unseen"),
    ]


def test_gold_that_overlaps_an_entity_is_right_where_it_was_found_and_missed_elsewhere(tmp_path):
    """Entities can't overlap, so no text teaches it."""
    predicted = [(0, 7, "A", 0.9), (4, 7, "B", 0.8), (8, 14, "A", 0.7), (12, 14, "B", 0.6)]
    docs = [make_doc([(0, 7, "A")], [(0, 7, "A"), (4, 7, "B")], found=predicted[:number]) for number in (2, 1)]
    docs += [make_doc([(8, 14, "A")], [(8, 11, "A"), (12, 14, "B")], found=predicted)]
    tables = write(tmp_path, keyed(docs))
    kinds = [(row["kind"], row["gold_label"], row["predicted_label"]) for row in rows_of(tables)]
    assert kinds[:2] == [("right", "A", "A"), ("nested", "B", None)]
    assert kinds[2:4] == [("right", "A", "A"), ("missed", "B", None)]
    assert kinds[4:] == [("boundaries", "A", "A"), ("missed", "B", None), *[("nested", None, one) for one in "AB"]]
    metrics = measure(tables, ["A", "B"])
    assert metrics.all_spans.labels["B"].r == pytest.approx(2 / 3)
    assert metrics.mistakes["B"] == Mistakes(right=1, missed=2, causes={"found": 1, "overlapped": 2})


def test_train_is_counted_by_form_and_label(merging):
    train = [task("a cat", (2, 5)), task("the cat", (4, 7)), task("no cat"), task("cat tree", (0, 8, "B"))]
    train += [task(f"{number} one cat", (2, 9, "A")) for number in "4567"]
    merging.add("train", ["A", "B"], train, split="train")
    merging.add("test", ["A", "B"], [task("my cat", (3, 6)), task("one cat", (0, 7, "B"))], split="test")
    merging.run()
    root = merging.root

    def write_rows(labels):
        stored = [stored for file in find_partitions(root / "corpus" / "test") for stored in read_stored_docs(file)]
        docs = [msgspec.structs.replace(gold_of(one), predicted=[(3, 6, "A")]) for one in stored]
        forms = (digest_forms(*both, labels) for both in zip(stored, docs, strict=True))
        make_rows(zip(docs, forms, strict=True), "test", labels).write(root)
        (root / "written").mkdir(exist_ok=True)
        collect([[root]], root / "corpus", labels, Tables.of(root / "written"), None, no_progress)
        return rows_of(Tables.of(root / "written"))

    names = ("annotated", "unannotated", "otherwise", "other_label")
    counts = {
        (row["gold_text"] or row["predicted_text"], row["kind"]): tuple(row[name] for name in names)
        for row in write_rows(["A", "B"])
    }
    assert counts["cat", "right"] == (2, 1, 0, None)
    assert counts["one cat", "label"] == (0, 4, 4, "A")
    assert measure(Tables.of(root / "written"), ["A", "B"]).mistakes["B"].causes == {"label": 1}
    assert {row["kind"] for row in write_rows([])} == {"unscored"}, "a pipeline that knows no label"


@pytest.mark.parametrize(
    ("content", "message"), [(None, "there is no such file"), (b"no table", "not a table of an eva")]
)
def test_a_table_that_is_missing_or_something_else_is_named(content, message, tmp_path):
    tables = write(tmp_path, keyed([make_doc()]))
    tables.pairs.unlink()
    if content:
        tables.pairs.write_bytes(content)
    for read in (lambda: list(tables.groups(["key"], ["key"])), lambda: tables.read_pairs(["key"])):
        with pytest.raises(InputError, match=rf"pairs\.parquet: {message}"):
            read()
