import json
import shutil
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from pyarrow.parquet import read_table

from labelwise.base.files import list_digests, locked
from labelwise.corpus.manifest import MANIFEST, digest_splits, read_manifest
from labelwise.corpus.record import RECORD, write_record
from labelwise.corpus.seen_texts import write_seen
from labelwise.evaluate import evaluate_pipeline as run
from labelwise.evaluate.predictions import read_predictions
from labelwise.evaluate.resampling import MIN_UNITS, Jackknife
from labelwise.evaluate.scoring import measure
from labelwise.evaluate.tables import Tables
from scripts.evaluate import evaluate_cli
from tests.conftest import another_process, call, save_ruler, task
from tests.evaluate.written import write_rows


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


TABLES_OF_OWN = tuple(f"training/own/{name}" for name in ("texts.parquet", "pairs.parquet", "groups.json"))
FILES = ("metrics/own.json", "predictions.jsonl", *TABLES_OF_OWN)
TABLES = Path("training/own")


def evaluate(folder: Path, model: Path, split: Path, *options: object, status: int = 0) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    arguments = ("own", "--model", model, "--split", split, "--predictions", "predictions.jsonl", *options)
    with chdir(folder):
        return " ".join(call(evaluate_cli, *arguments, status=status).split())


def test_one_process_and_two_write_and_print_the_predictions(ruler, demo_corpus, tmp_path):
    out = tmp_path / "new" / "folder"
    printed = evaluate(out, ruler, demo_corpus / "test")
    assert set(files_of(out)) == set(FILES)
    assert {path.name for path in tmp_path.iterdir()} == {"new"}
    metrics = json.loads((out / "metrics/own.json").read_text())
    manifest, docs = read_manifest(demo_corpus), list(read_predictions(out / "predictions.jsonl"))
    assert metrics["texts"] == manifest.splits["test"].texts
    words = read_table(out / TABLES / "texts.parquet")["words"].to_pylist()
    assert sum(words) == manifest.splits["test"].words, "its tokens are the corpus's"
    assert metrics["split_digest"] == digest_splits(demo_corpus, ["test"])
    assert metrics["predictions_digest"] == Tables.of(out / TABLES).digest()
    assert list(metrics["all_gold"]["labels"]) == list(metrics["mistakes"]) == manifest.labels
    assert metrics["all_gold"]["support"] == sum(len(doc.gold) for doc in docs)
    causes = [row["causes"] for row in metrics["mistakes"].values()]
    assert sum(sum(counts.values()) for counts in causes) == metrics["all_gold"]["support"]
    assert sum(counts.get("found", 0) for counts in causes) == sum(row["right"] for row in metrics["mistakes"].values())
    # There is something to get wrong.
    assert 0.1 < metrics["all_gold"]["f"] < 0.95
    assert metrics["unscored"] > 0
    assert "Label P R F1 95% Support" in printed
    scores = metrics["all_gold"]
    for label, row in (scores["labels"] | {"all (micro)": scores, "mean (macro)": scores["macro"]}).items():
        figures = " ".join(f"{row[key]:.3f}" for key in "prf")
        few = f"{row['units']} text{'s' * (row['units'] > 1)} "
        between = few if row["units"] < MIN_UNITS else f"{row['f_low']:.3f}-{row['f_high']:.3f} "
        assert f"{label} {figures} {between}{row.get('support', '')}" in printed
    assert f"Not scored: {metrics['unscored']} predictions" in printed
    assert f"Scores on {metrics['texts']} texts: metrics/own.json" in printed
    assert (out / "metrics/own.json").read_bytes().endswith(b"}\n")
    again = evaluate(tmp_path / "two", ruler, demo_corpus / "test", "--workers", 2)
    assert again.split("Scores on")[0] == printed.split("Scores on")[0]
    assert files_of(tmp_path / "two") == files_of(out)


@pytest.mark.guarantee("dev-and-test")
def test_dev_is_scored_beside_test_and_changes_nothing_of_it(ruler, demo_corpus, tmp_path):
    model = Path(shutil.copytree(ruler, tmp_path / "model"))
    write_seen(model, np.zeros(0, np.uint64))
    outputs, rows = {}, {}
    for name, options in (("both", ()), ("test", ("--split", "corpus/test")), ("dev", ("--split", "corpus/dev"))):
        (folder := tmp_path / name).mkdir()
        (folder / "corpus").symlink_to(demo_corpus)
        with chdir(folder):
            printed = call(evaluate_cli, "own", "--model", model, "--predictions", "predictions.jsonl", *options)
        outputs[name] = json.loads((folder / "metrics/own.json").read_text())
        rows[name] = [read_table(file).to_pylist() for file in Tables.of(folder / TABLES).files]
        assert ("F1 on dev" in printed) == (name == "both")
    both, test, dev = outputs.values()
    assert {name for name in both if both[name] != test[name]} == {"predictions_digest", "dev"}
    assert both["dev"] == {name: dev[name] for name in both["dev"]} | {"seen": None}
    assert {"all_gold", "mistakes", "split_digest"} < both["dev"].keys()
    for every, of_test, of_dev in zip(*rows.values(), strict=True):
        assert every == [row | {"seen": None} if "seen" in row else row for row in of_dev] + of_test
        assert {row["split"] for row in every} == {"dev", "test"}
    predictions = [(tmp_path / name / "predictions.jsonl").read_bytes() for name in ("both", "test")]
    assert predictions[0] == predictions[1]


def conll(documents: int, sentences: int) -> str:
    """Make sentences with a cat or, in half of the documents, a tiger, which the rules don't find."""
    lines = []
    for document in range(documents):
        lines.append("-DOCSTART- O\n")
        animal = "tiger" if document % 2 else "cat"
        lines += [f"the O\n{animal} B-A\n{document}x{number} O\n" for number in range(sentences)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("settings", "documents", "unit", "units"),
    [
        ({}, 6, "document", 12),
        ({"split_by": "doc"}, 6, "document", 6),  # both files have the same numbers
        ({"split_by": "place"}, 6, "place", 14),
        ({}, 2, "document", 4),
    ],
)
def test_an_interval_leaves_out_documents_and_below_five_there_is_none(merging, settings, documents, unit, units):
    """Two files number their documents alike; in the other dataset, each text is a document."""
    for name in ("one", "two"):
        merging.add(name, ["A"], [], path=f"{name}.conll", split="test")
        content = conll(documents, 3).replace("x", name)
        (merging.root / "tasks" / f"{name}.conll").write_text(content)
    rows = [task(f"a cat {n}", (2, 5), meta={"place": f"p{n % 2}"}) for n in range(4)]
    if "place" in settings.values():
        merging.add("prodigy", ["A"], rows, split="test")
    merging.run(**settings)
    printed = evaluate(merging.root, save_ruler(merging.root / "model", ("A", "cat")), merging.root / "corpus/test")
    metrics = json.loads((merging.root / "metrics/own.json").read_text())
    assert (metrics["unit"], metrics["all_gold"]["units"]) == (unit, units)
    assert f"Label P R F1 95% by {unit} Support" in printed
    if units < MIN_UNITS:
        assert f"{units} documents" in printed
        assert not {"f_low", "f_high"} & metrics["all_gold"].keys()
        return
    by_unit = np.array([[[0, 0, n]] if number % 2 else [[n, n, n]] for number, n in sizes_of(units, settings)])
    jackknife = Jackknife(by_unit.sum(0))
    jackknife.add(by_unit)
    low, high = jackknife.interval(within=True)[:, 0]
    assert (metrics["all_gold"]["f_low"], metrics["all_gold"]["f_high"]) == pytest.approx((low, high))


def sizes_of(units: int, settings: dict[str, str]) -> list[tuple[int, int]]:
    if "place" in settings.values():
        return [*((number, 3) for number in range(12)), (0, 2), (0, 2)]
    return [(number, 36 // units) for number in range(units)]


@pytest.mark.parametrize("by", [[], ["source"], ["source", "dataset"]])
def test_texts_are_scored_by_where_they_come_from(merging, by):
    rows = [task(f"a cat {n}", (2, 5), meta={"source": f"s{n % 2}"}) for n in range(20)]
    merging.add("one", ["A"], rows[:12], split="test")
    merging.add("two", ["B"], [{**row, "spans": [], "meta": {"source": "s1"}} for row in rows[10:]], split="test")
    merging.add("none", ["A"], [task("a tiger", (2, 7))], split="test")
    merging.run(by=by)
    printed = evaluate(merging.root, save_ruler(merging.root / "model", ("A", "cat")), merging.root / "corpus/test")
    stored = json.loads((merging.root / "training/own/groups.json").read_text())
    metrics = json.loads((merging.root / "metrics/own.json").read_text())
    counts = {
        key: {value: (scores["texts"], scores["support"]) for value, scores in of.items()} for key, of in stored.items()
    }
    expected = {"source": {"s1": (14, 6), "s0": (6, 6)}, "dataset": {"one": (12, 12), "two": (10, 2), "none": (1, 1)}}
    assert counts == {key: expected[key] for key in sorted(by)}
    for key in by:
        assert f"{key} P R F1 95% Support Texts" in printed
    assert metrics["groups"] == {key: stored[key] for key in by if key == "dataset"}
    assert "s0" not in (merging.root / "metrics/own.json").read_text()


@pytest.mark.guarantee("seen-texts")
def test_training_texts_in_test_are_reported_with_f1_without_them(ruler, demo_corpus, tmp_path):
    split = demo_corpus / "train"
    assert "ℹ Unknown whether some of the" in evaluate(tmp_path, ruler, split)
    before = json.loads((tmp_path / "metrics/own.json").read_text())
    assert before["seen"] is None
    docs = list(read_predictions(tmp_path / "predictions.jsonl"))
    trained = Path(shutil.copytree(ruler, tmp_path / "model"))
    for seen in (0, 9):
        digests = np.array(sorted(int(doc.key[:16], 16) for doc in docs[:seen]), np.uint64)
        write_seen(trained, digests)
        printed = evaluate(tmp_path, trained, split)
        metrics = json.loads((tmp_path / "metrics/own.json").read_text())
        tables, labels = Tables.of(tmp_path / TABLES), read_manifest(demo_corpus).labels
        f, kept = metrics["all_gold"]["f"], Tables.of(tmp_path / "model")
        write_rows(((doc, {}) for doc in docs[seen:]), "train", labels, kept)
        without = measure(kept, labels).all_gold.f
        assert sum(table["seen"] for table in read_table(tables.texts).to_pylist()) == seen
        assert metrics["seen"] == {"texts": seen, "f_without": without}
        assert [name for name in metrics if metrics[name] != before[name]] == [
            "seen",
            "predictions_digest",
            "pipeline_digest",
        ]
        warning = f"⚠ {seen} of {len(docs)} texts were in the pipeline's train or dev set: F1 is {f:.3f}"
        assert (f"{warning}, without them {without:.3f} Evaluate it on test" in printed) == bool(seen)
        assert ("trained on" in printed) == (without != f) == bool(seen)


def test_an_edited_pipeline_is_told_of_and_its_files_are_read_once(ruler, demo_corpus, tmp_path, monkeypatch):
    model, listed = Path(shutil.copytree(ruler, tmp_path / "model")), []
    write_record(model)
    for module in ("labelwise.evaluate.evaluate_pipeline", "labelwise.base.files"):
        monkeypatch.setattr(f"{module}.list_digests", lambda folder: listed.append(folder) or list_digests(folder))
    message = f"⚠ {model} has changed since its training:"
    assert message not in evaluate(tmp_path, model, demo_corpus / "test")
    assert listed == [model]
    meta = json.loads((model / "meta.json").read_text())
    (model / "meta.json").write_text(json.dumps(meta | {"version": "9"}))
    (model / "more.txt").touch()
    printed = evaluate(tmp_path, model, demo_corpus / "test")
    assert f"{message} meta.json, more.txt The scores are of the pipeline as it is now" in printed
    (model / RECORD).write_text("[]")
    assert f"{message} {RECORD} The" in evaluate(tmp_path, model, demo_corpus / "test")


def test_what_cannot_be_evaluated_is_refused_with_a_remedy(ruler, demo_corpus, tmp_path):
    test = demo_corpus / "test"
    for pipeline, split, options, message in (
        (tmp_path / "model", test, (), "model: no trained pipeline; run the training first"),
        (ruler, tmp_path / "corpus" / "test", (), f"{MANIFEST}: there is no such file; run the merge to completion"),
        (ruler, demo_corpus / "none", (), "none: not a split of that corpus; give train or dev or test"),
        (ruler, test, ("--workers", 0), "--workers 0: give 1 or more"),
    ):
        printed = evaluate(tmp_path, pipeline, split, *options, status=1)
        assert message in printed
        assert "Nothing was evaluated" in printed
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.guarantee("exclusive")
@pytest.mark.parametrize("file", FILES)
def test_files_that_another_process_is_writing_are_refused_at_once(ruler, demo_corpus, tmp_path, monkeypatch, file):
    monkeypatch.setattr(run, "evaluate_part", lambda *args: pytest.fail("it was begun"))
    with another_process(locked(tmp_path / file)):
        printed = evaluate(tmp_path, ruler, demo_corpus / "test", status=1)
    assert f"{Path(file).name}: another process is writing this; wait until it ends" in printed
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
