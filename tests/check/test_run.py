"""The check of a corpus, whole: wrong tags that were planted are found first, and can be looked up and opened."""

import csv
import json
import shutil
from collections import Counter
from html import escape
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from labelwise.check import run
from labelwise.check.folds import LOOKED_AT, CheckedDoc, read_checked
from labelwise.check.look_up import DevMistakes, locate
from labelwise.check.run import check
from labelwise.check.worklists import Finding
from labelwise.commands.check_labels import check_labels_cli
from labelwise.common import memory
from labelwise.common.errors import InputError
from labelwise.common.keys import text_key
from labelwise.corpus.manifest import read_split
from labelwise.corpus.pipeline import load_pipeline
from labelwise.corpus.tasks import input_hash
from labelwise.demo.corpus import add_noise, make_doc
from labelwise.demo.write import write_brat
from labelwise.evaluate.mistakes import pair_spans
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.sources.convert_brat import convert_brat
from labelwise.train import side_by_side
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import ROOT
from tests.corpus.test_forms import stored

CPU = ROOT / "configs" / "cpu.cfg"
SMALL = {"training.max_steps": 60, "training.eval_frequency": 30, "training.batcher.size": 1000}
LABELS = ("PERSON", "PLACE", "COMPANY", "DATE")


@pytest.fixture(scope="module")
def noisy(tmp_path_factory) -> Path:
    """120 texts, of which a tenth of the tags is wrong, merged."""
    root = tmp_path_factory.mktemp("noisy")
    docs = [make_doc(number, labels=LABELS, words=80) for number in range(120)]
    write_brat((add_noise(doc, 0.1, labels=LABELS) for doc in docs), root / "brat")
    convert_brat(root / "brat", root / "tasks")
    merge_data([root / "tasks" / "datasets.yml"], root / "corpus", Settings(docs_per_partition=40))
    return root


def planted() -> set[tuple]:
    """The document and the offsets of what is wrong: there and shouldn't be, or should be there."""
    wrong = set()
    for number in range(120):
        doc = make_doc(number, labels=LABELS, words=80)
        noise = add_noise(doc, 0.1, labels=LABELS)
        wrong |= {(doc.path, *span) for span in set(doc.spans) ^ set(noise.spans)}
    return wrong


def rows_of(folder: Path) -> list[dict]:
    with (folder / "findings.tsv").open(encoding="utf8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def bytes_of(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}


def spans_of(row: dict) -> set[tuple]:
    here = (row["doc"], int(row["start"]), int(row["end"]), row["label"]) if row["start"] else None
    better = ["proposed_start", "proposed_end"]
    instead = (row["doc"], *(int(row[name]) for name in better), row["proposed"]) if row["proposed"] else None
    return {span for span in (here, instead) if span}


@pytest.fixture(scope="module")
def trained(noisy) -> Path:
    model = noisy / "model"
    train_pipeline(Recipe(CPU, noisy / "corpus", overrides=SMALL), model, noisy / "curve.tsv")
    return model


@pytest.fixture(scope="module")
def checked(noisy, trained) -> Path:
    out = noisy / "check"
    check(Recipe(CPU, noisy / "corpus", overrides=SMALL), out, folds=2, model=trained, workers=2)
    return out


@pytest.mark.slow
def test_the_first_findings_are_what_is_wrong(checked):
    wrong, rows = planted(), rows_of(checked)
    first = rows[: len(wrong) // 4]
    assert sum(not wrong.isdisjoint(spans_of(row)) for row in first) > 0.7 * len(first)
    assert [float(row["score"]) for row in rows] == sorted((float(row["score"]) for row in rows), reverse=True)


@pytest.mark.slow
def test_findings_say_where_they_are(checked, noisy):
    """Document, offsets, data set, file and line are those of the source."""
    rows = rows_of(checked)
    assert {row["split"] for row in rows} == {"train", "dev"}
    for row in rows[:30]:
        text = (noisy / "brat" / row["doc"]).read_text(encoding="utf8")
        start, end = (
            (int(row[name or "proposed_start"]) for name in ("start", "end"))
            if row["start"]
            else (
                int(row["proposed_start"]),
                int(row["proposed_end"]),
            )
        )
        assert " ".join(text[start:end].split()) == row["form"]
        places = row["places"].split("; ")
        assert {place.split()[0] for place in places} == {row["label"], *([row["proposed"]] if row["proposed"] else [])}
        for place in places:
            dataset, where = place.split()
            name, line = where.split(":")
            task = json.loads((noisy / "tasks" / name).read_text(encoding="utf8").splitlines()[int(line) - 1])
            assert (task["text"], name) == (text, f"{dataset}.jsonl")


@pytest.mark.slow
def test_each_label_has_tasks_that_prodigy_opens(checked):
    files = sorted((checked / "tasks").iterdir())
    assert {file.stem for file in files} == set(LABELS)
    for file in files:
        tasks = [json.loads(line) for line in file.read_text(encoding="utf8").splitlines()]
        assert len({task["text"] for task in tasks}) == len(tasks) > 0
        for task in tasks:
            assert task["_input_hash"] == input_hash(task["text"])
            assert {span["label"] for span in task["spans"]} <= {file.stem}
            assert task["meta"]["look"]
            assert task["meta"]["doc"].endswith(".txt")


def test_a_task_that_is_saved_to_its_own_data_set_takes_nothing_from_other_labels(merging):
    """A data set of two labels, whose newer answer replaces the older one; and one of a third label alone."""
    rows = [
        {
            "text": f"{n}: my cat saw Rome",
            "spans": [{"start": len(f"{n}: my cat saw "), "end": len(f"{n}: my cat saw Rome"), "label": "PLACE"}],
        }
        for n in range(12)
    ]
    for n, row in enumerate(rows[1:], 1):
        row["spans"].append({"start": len(f"{n}: my "), "end": len(f"{n}: my cat"), "label": "PET"})
    merging.add("both", ["PET", "PLACE"], rows, split="train")
    merging.add("verb", ["VERB"], [{"text": row["text"]} for row in rows], split="train")
    before = merging.run()
    check(Recipe(CPU, merging.root / "corpus"), merging.root / "check", folds=0)
    (first, *_) = [json.loads(line) for line in (merging.root / "check/tasks/PET.jsonl").read_text().splitlines()]
    assert (first["text"], first["meta"]["labels"]) == (rows[0]["text"], "PET,PLACE")
    corrected = {**first, "spans": [*first["spans"], {"start": 6, "end": 9, "label": "PET"}]}
    with (merging.root / "tasks" / "both.jsonl").open("a") as file:
        file.write(json.dumps(corrected) + "\n")
    after = merging.run()
    assert after.rows["superseded"] == 1
    gold = [{label: counts["gold"] for label, counts in ledger.labels.items()} for ledger in (before, after)]
    assert gold == [{"PET": 11, "PLACE": 12, "VERB": 0}, {"PET": 12, "PLACE": 12, "VERB": 0}]


def test_without_pipelines_the_forms_alone_are_looked_at(noisy, tmp_path, monkeypatch):
    monkeypatch.setattr(side_by_side, "train_pipeline", None)
    summary = check(Recipe(CPU, noisy / "corpus"), tmp_path / "check", folds=0)
    rows = rows_of(tmp_path / "check")
    assert summary.texts == len(list(read_checked(noisy / "corpus", *LOOKED_AT))) < 120
    assert sum(sum(kinds.values()) for kinds in summary.findings.values()) == len(rows) > 20
    assert sum(group.findings for group in summary.groups) == len(rows)
    assert max(int(row["similar"]) for row in rows) == max(group.findings for group in summary.groups)


def test_the_best_of_each_label_are_kept(noisy, tmp_path):
    for most in (3, 1000):
        check(Recipe(CPU, noisy / "corpus"), tmp_path / str(most), folds=0, most=most)
    few, all_rows = rows_of(tmp_path / "3"), rows_of(tmp_path / "1000")
    for label in LABELS:
        scores = [[row["score"] for row in rows if row["label"] == label] for rows in (few, all_rows)]
        assert scores[0] == scores[1][:3]


def test_equal_checks_write_equal_bytes(noisy, tmp_path):
    for name in ("one", "two"):
        check(Recipe(CPU, noisy / "corpus"), tmp_path / name, folds=0)
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "two")


@pytest.mark.slow
def test_mistakes_on_dev_say_what_pays_most(checked, noisy, trained):
    """They are counted here from the pipeline's own spans; what pays most leads the groups, and each label's tasks."""
    nlp = load_pipeline(trained)
    mistakes = Counter()
    for doc in read_checked(noisy / "corpus", "dev"):
        text, gold = doc.stored.text, doc.stored.annotation.accepted
        predicted = nlp(text)
        found = {(span.start_char, span.end_char, span.label_) for span in predicted.spans["labels"]}
        for pair in pair_spans(gold, found):
            if pair.kind:
                forms = {" ".join(text[span[0] : span[1]].split()) for span in pair if span}
                mistakes.update((form, frozenset(pair.labels) - {""}) for form in forms)
    rows = rows_of(checked)
    for row in rows:
        both = {row["label"], row["proposed"]} - {""}
        expected = sum(mistakes[row["form"], labels] for labels in {frozenset(both), frozenset({row["label"]})})
        assert int(row["explains"]) == max(0, expected - (row["split"] == "dev"))
    assert len({row["explains"] for row in rows}) > 2
    groups = json.loads((checked / "check.json").read_text())["groups"]
    worth = [group["worth"] for group in groups]
    assert worth == sorted(worth, reverse=True)
    assert groups[0]["explains"] > 1
    for label in LABELS:
        (first, *_) = [json.loads(line) for line in (checked / "tasks" / f"{label}.jsonl").read_text().splitlines()]
        of_label = [group for group in groups if label in (group["label"], group["proposed"])]
        assert any(f"'{group['form']}'" in first["meta"]["look"] for group in of_label[:2])


def test_without_a_pipeline_the_surest_come_first(noisy, tmp_path):
    told = []
    summary = check(
        Recipe(CPU, noisy / "corpus"), tmp_path / "check", folds=0, model=tmp_path / "none", tell=told.append
    )
    scores = [group.score for group in summary.groups]
    assert scores == sorted(scores, reverse=True)
    assert {row["explains"] for row in rows_of(tmp_path / "check")} == {"0"}
    assert told == [
        "No pipeline with a head for each label is trained: no opinion on dev, no mistakes on it to rank by"
    ]


class Found:
    """An opinion that has found some places."""

    def __init__(self, *found: tuple[int, int, int]) -> None:
        self.found = set(found)


def test_a_finding_explains_the_mistakes_of_its_own_label_or_pair_alone(tmp_path):
    """Of `cat`, which is A and B: A missed, A taken for B, B missed, and A of another form missed; and one in train."""
    texts = [
        ("cat", [(0, 1, "A")], {}),
        ("cat", [(0, 1, "A")], {}),
        ("cat", [(0, 1, "B")], {}),
        ("dog", [(0, 1, "A")], {}),
    ]
    docs = stored(tmp_path, *texts, texts[0])
    mistakes = DevMistakes(["A", "B"])
    for number, (doc, split) in enumerate(zip(docs, ["dev"] * 4 + ["train"], strict=True)):
        mistakes.add(CheckedDoc(split, doc, Found((0, 1, 1)) if number == 1 else Found()))
    here = (0, 3, "A")
    findings = [
        Finding(1.0, "wrong label", "A", "cat", here, (0, 3, "B"), "train", "x", "", "", ""),
        Finding(1.0, "spurious", "A", "cat", here, None, "train", "x", "", "", ""),
    ]
    mistakes.explain(findings)
    assert [finding.explains for finding in findings] == [2, 1]


@pytest.mark.long
def test_findings_do_not_depend_on_the_number_of_processes(noisy, tmp_path):
    few = {**SMALL, "training.max_steps": 4, "training.eval_frequency": 2}
    for workers in (1, 2):
        check(Recipe(CPU, noisy / "corpus", overrides=few), tmp_path / str(workers), folds=3, workers=workers)
    assert bytes_of(tmp_path / "1") == bytes_of(tmp_path / "2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]


def test_no_more_is_trained_side_by_side_than_memory_allows(noisy, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        run, "train_folds", lambda recipe, out, folds, workers, *where: asked.append(workers) or iter(())
    )
    monkeypatch.setattr(memory, "tree_pss", lambda pid: 0)
    for size in ("900GB", "700MB", "300MB"):
        check(Recipe(CPU, noisy / "corpus"), tmp_path / "check", workers=3, memory=size)
    assert asked == [3, 2, 1]
    with pytest.raises(InputError, match="memory 299MB: the least possible is 300MB"):
        check(Recipe(CPU, noisy / "corpus"), tmp_path / "check", workers=3, memory="299MB")


@pytest.mark.parametrize(
    ("options", "message"), [({"folds": 1}, "folds 1: give at least 2"), ({"most": 0}, "--most 0: give at least 1")]
)
def test_numbers_out_of_range_are_errors(options, message, noisy, tmp_path):
    with pytest.raises(InputError, match=message):
        check(Recipe(CPU, noisy / "corpus"), tmp_path / "out", **options)


@pytest.mark.parametrize("damage", ["no pipeline", "no places", "no JSON"])
def test_what_is_not_there_is_said_before_anything_is_trained(damage, noisy, tmp_path, monkeypatch):
    monkeypatch.setattr(side_by_side, "train_pipeline", lambda *given, **options: pytest.fail("trained"))
    shutil.copytree(noisy / "corpus", tmp_path / "corpus")
    places = tmp_path / "corpus" / "places.jsonl"
    if damage == "no places":
        places.unlink()
    elif damage == "no JSON":
        places.write_text("{oops\n")
    message = {
        "no pipeline": "no trained pipeline; run the training first",
        "no places": r"places\.jsonl: there is no such file; run the merge",
        "no JSON": r"places\.jsonl:1: not what a merge writes \(.*\); run the merge again",
    }[damage]
    with pytest.raises(InputError, match=message):
        check(Recipe(CPU, tmp_path / "corpus"), tmp_path / "out", model=tmp_path if damage == "no pipeline" else None)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ({}, ["a a.jsonl:1 (ann)"]),
        ({"answer": "ignore"}, []),
        ({"answer": "reject"}, []),
        ({"_view_id": "ner", "spans": [{"start": 3, "end": 7, "label": "A"}]}, ["a a.jsonl:1 (ann)"]),
        (
            {"_view_id": "ner", "answer": "reject", "spans": [{"start": 4, "end": 7, "label": "A"}]},
            ["a a.jsonl:1 (ann)"],
        ),
        ({"_view_id": "ner", "spans": [{"start": 0, "end": 3, "label": "A"}]}, []),
        ({"_view_id": "classification"}, []),
    ],
)
def test_places_are_those_of_answers_that_say_something_of_the_finding(answer, found, merging):
    task = {"text": "big cat", "_view_id": "ner_manual", "_annotator_id": "ann", **answer}
    merging.add("a", ["A"], [task])
    key = text_key(b"big cat").hex()
    finding = Finding(1.0, "missing", "A", "cat", None, (4, 7, "A"), "train", "", key, "", "")
    merging.run()
    locate([finding], merging.root / "corpus", {"a": ("A",)})
    assert finding.places == found


def test_what_is_counted_and_who_does_not_agree_is_said(merging):
    """A rare label, one in a single split, spans of signs alone, near-duplicates, an edge, and two annotators."""
    rows = []
    for n in range(40):
        rest = "then go on for quite a while with one and the other and whatever else there is to be done " * 3
        text = f"{n}: wash the plate and {rest}!"
        plate, sign = text.index("plate"), text.index("!")
        start = plate - 4 if n % 4 == 0 else plate
        spans = [{"start": start, "end": plate + 5, "label": "DEVICE"}]
        spans += [{"start": sign, "end": sign + 1, "label": "SIGN"}] if n < 9 else []
        rows.append({"text": text, "spans": spans, "_annotator_id": "ann"})
    other = [{**row, "spans": row["spans"][: n % 2], "_annotator_id": "bob"} for n, row in enumerate(rows[20:])]
    merging.add("a", ["DEVICE", "SIGN"], rows + other)
    merging.add(
        "rare",
        ["RARE"],
        [{"text": "only here: one rare thing", "spans": [{"start": 11, "end": 14, "label": "RARE"}]}],
        split="dev",
    )
    merging.run()
    corpus = merging.root / "corpus"
    app = typer.Typer()
    app.command()(check_labels_cli)
    (merging.root / "mine.yml").write_text("check: {folds: 0}")
    arguments = [corpus, "--out", merging.root / "check", "--config", CPU, "--project", merging.root / "mine.yml"]
    result = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    found = json.loads((merging.root / "check" / "check.json").read_text())
    assert (found["few"]["RARE"], found["only"]["RARE"]) == (0, "dev")
    assert "DEVICE" not in found["few"]
    assert found["without_letters"] == {"SIGN": len(lines_of(corpus, "SIGN"))}
    (pair,) = [one for one in found["annotators"] if one["label"] == "DEVICE"]
    assert (pair["one"], pair["other"], pair["texts"]) == ("ann", "bob", 20)
    printed = " ".join(result.output.split())
    assert f"DEVICE: ann, bob 20 {pair['f']:.3f} {pair['kappa']:.3f}" in printed
    assert "disagreements.jsonl has the texts that they annotated otherwise" in printed
    assert "RARE: 0 spans in train; annotate more texts for it" in printed
    assert "RARE: all its spans are in dev" in printed
    inconsistency = next(one for one in found["inconsistencies"] if one["label"] == "DEVICE")
    assert f"DEVICE: the (first word) {inconsistency['taken_in']} {inconsistency['left_out']}" in printed
    with (merging.root / "check" / "inconsistencies.tsv").open(encoding="utf8") as file:
        places = {row["places"].split()[0] for row in csv.DictReader(file, delimiter="\t") if row["label"] == "DEVICE"}
    assert places == {"a"}


def lines_of(corpus: Path, label: str) -> list:
    """The accepted spans of a label, in train and dev together."""
    docs = read_checked(corpus, *LOOKED_AT)
    return [span for doc in docs for span in doc.stored.annotation.gold if span[2] == label]


def test_a_folder_that_is_no_check_is_not_replaced(noisy, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="check"):
        check(Recipe(CPU, noisy / "corpus"), tmp_path, folds=0)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_the_command_says_what_to_fix_first(noisy, tmp_path):
    app = typer.Typer()
    app.command()(check_labels_cli)
    (tmp_path / "mine.yml").write_text("check: {folds: 0}")
    arguments = [noisy / "corpus", "--out", tmp_path / "check", "--config", CPU, "--project", tmp_path / "mine.yml"]
    arguments += ["--page", tmp_path / "report" / "check.html"]
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    assert "Fix first" in result.output
    found = json.loads((tmp_path / "check" / "check.json").read_text(encoding="utf8"))
    assert found["digest"] == read_split(noisy / "corpus" / "train")["digest"]
    page = (tmp_path / "report" / "check.html").read_text(encoding="utf8")
    assert f'<td class="form">{escape(found["groups"][0]["form"])}</td>' in page
