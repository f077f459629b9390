import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from labelwise.base.errors import InputError
from labelwise.base.files import sibling
from labelwise.base.text import text_key
from labelwise.check import folds as folds_module
from labelwise.check.check_corpus import check
from labelwise.check.finding import MIN_SCORE, Finding, locate
from labelwise.check.folds import Folds, read_checked
from labelwise.corpus.answers import read_answers
from labelwise.corpus.manifest import read_split
from labelwise.corpus.record import LEARNED
from labelwise.demo.corpus import add_noise, make_doc
from labelwise.merge.rules.settings import Settings
from labelwise.train.training_config import TrainingConfig
from scripts.check_labels import check_labels_cli
from tests.conftest import ROOT, TINY, call, merge_demo, read_jsonl, run_python, task

CPU = ROOT / "configs" / "cpu.cfg"
SMALL = TINY | {"training.max_steps": 60, "training.batcher.size": 1000, "training.optimizer.learn_rate": 0.01}
SHORT = TINY | {"training.max_steps": 2, "training.eval_frequency": 1}
LABELS = ("PERSON", "PLACE", "COMPANY", "DATE")


@pytest.fixture(scope="module")
def noisy(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("noisy")
    merge_demo(root, Settings(docs_per_partition=40), docs=120, labels=len(LABELS), words=160, noise=0.1)
    return root


def planted() -> set[tuple]:
    """Return document and offsets of each error, a wrong or missing span."""
    wrong = set()
    for number in range(120):
        doc = make_doc(number, labels=LABELS, words=160)
        noise = add_noise(doc, 0.1, labels=LABELS)
        wrong |= {(doc.path, *span) for span in set(doc.spans) ^ set(noise.spans)}
    return wrong


def rows_of(folder: Path) -> list[dict]:
    return read_jsonl(folder / "findings.jsonl")[1:]


def bytes_of(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}


def is_planted(row: dict, wrong: set[tuple]) -> bool:
    return any((row["doc"], *span) in wrong for span in (row["current"], row["proposed"]) if span)


@pytest.fixture(scope="module")
def counted(noisy) -> Path:
    check(noisy / "corpus", noisy / "check")
    return noisy / "check"


@pytest.fixture(scope="module")
def folded(noisy) -> Path:
    recipe = TrainingConfig(CPU, noisy / "corpus", overrides=SMALL)
    check(noisy / "corpus", noisy / "folds", Folds(recipe, 2, workers=2))
    return noisy / "folds"


def test_a_killed_check_does_not_repeat_a_training_that_has_ended(demo_corpus, tmp_path):
    """A training with another seed is repeated."""
    pipelines, made = sibling(tmp_path / "folds", "folds"), list[tuple[int, ...]]()

    def kill(message: str) -> None:
        if "is trained" in message:
            made.append(tuple(file.stat().st_ino for file in sorted(pipelines.glob("*/ner/model"))))
            if message.startswith("Pipeline 2"):
                raise KeyboardInterrupt

    for seed in (0, 0, 1):
        recipe = TrainingConfig(CPU, demo_corpus, overrides=SHORT, seed=seed, resume=True)
        with pytest.raises(KeyboardInterrupt):
            check(demo_corpus, tmp_path / "folds", Folds(recipe, 2), tell=kill)
    first, before, again, then, other, _ = made
    assert first == before[:1]
    assert again == then == before
    assert other[0] not in before


@pytest.mark.parametrize(("made", "share"), [("counted", 0.5), ("folded", 0.7)])
def test_the_first_findings_are_what_is_wrong(made, share, request):
    wrong, rows = planted(), rows_of(request.getfixturevalue(made))
    first = rows[: len(wrong) // 4]
    assert sum(is_planted(row, wrong) for row in first) > share * len(first)
    scores = [row["score"] for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert min(row["score"] for row in rows if " word of " not in row["why"]) >= MIN_SCORE


def test_a_check_says_how_far_it_is(noisy, tmp_path):
    """Three passes over train and dev, one over texts with findings."""
    passes: dict[str, tuple[int, int]] = {}

    def progress(items, name, total):
        texts = [*items]
        passes[name] = (len(texts), total)
        return texts

    _, findings = check(noisy / "corpus", tmp_path / "check", progress=progress)
    texts = len({finding.key for finding in findings})
    assert passes.pop("look up answers") == (texts, texts)
    assert passes == dict.fromkeys(("count spans", "count words", "compare"), (110, 110))


def test_findings_say_where_they_are_and_what_a_decision_changes(counted, noisy):
    rows = rows_of(counted)
    answers = read_answers(noisy / "corpus", {row["key"] for row in rows})
    digests = {(key, answer.dataset): answer.digests for key, answers_of_text in answers for answer in answers_of_text}
    assert {row["split"] for row in rows} == {"train", "dev"}
    for row in rows[:30]:
        text = (noisy / "brat" / row["doc"]).read_text(encoding="utf8")
        start, end, _ = row["current"] or row["proposed"]
        assert " ".join(text[start:end].split()) == row["surface"]
        assert text[:start].endswith(row["before"])
        assert text[end:].startswith(row["after"])
        assert set(row["answers"]) == {span[2] for span in (row["current"], row["proposed"]) if span}
        for label, answer in row["answers"].items():
            name, _, line = answer["file"].partition(":")
            assert answer["dataset"] == "brat"
            if name == "auto.jsonl":  # nothing is marked in the document
                assert not row["current"]
                continue
            assert name == row["doc"].replace(".txt", ".ann")
            assert bool(line) == bool(row["current"]), "a missing span has no line"
            if line:
                marked = (noisy / "brat" / name).read_text(encoding="utf8").splitlines()[int(line) - 1]
                assert marked.split("\t")[1] == f"{row['current'][2]} {start} {end}"
            by_label = digests[row["key"], answer["dataset"]]
            assert answer["answer"] == by_label.get(label, answer["answer"])


def test_the_command_counts_without_training_and_writes_equal_bytes(counted, noisy, tmp_path, monkeypatch):
    monkeypatch.setattr(folds_module, "train_once", None)
    printed = call(check_labels_cli, noisy / "corpus", "--out", tmp_path / "check")
    head, *rows = read_jsonl(tmp_path / "check" / "findings.jsonl")
    assert head == {"digest": read_split(noisy / "corpus" / "train").digest, "texts": 110, "folds": 0}
    assert head["texts"] == len(list(read_checked(noisy / "corpus", *LEARNED)))
    assert len(rows) > 10
    assert f"{len(rows)} suspected errors in 110 texts" in " ".join(printed.split())
    assert bytes_of(tmp_path / "check") == bytes_of(counted)
    # In another process, whose sets have another order.
    run_python("-m", "scripts.check_labels", noisy / "corpus", "--out", tmp_path / "other", PYTHONHASHSEED="1")
    assert bytes_of(tmp_path / "other") == bytes_of(counted)


def test_missing_inputs_are_named_before_training(noisy, tmp_path, monkeypatch):
    monkeypatch.setattr(folds_module, "train_once", lambda *args, **options: pytest.fail("trained"))
    corpus = Path(shutil.copytree(noisy / "corpus", tmp_path / "corpus"))
    spans, recipe = corpus / "spans.parquet", TrainingConfig(CPU, corpus)
    with pytest.raises(InputError, match=r"folds 1: give at least 2, in the section `check` of project\.yml"):
        check(corpus, tmp_path / "out", Folds(recipe, 1))
    spans.write_text("{oops\n")
    with pytest.raises(InputError, match=r"(?s)spans\.parquet: not what a merge writes \(.*\); run the merge again"):
        check(corpus, tmp_path / "out", Folds(recipe, 3))
    spans.unlink()
    with pytest.raises(InputError, match=r"spans\.parquet: there is no such file; run the merge"):
        check(corpus, tmp_path / "out", Folds(recipe, 3))


def test_the_test_set_changes_no_finding(merging):
    def rows(place: str, marked: Callable[[int], bool]) -> list[dict]:
        texts = [f"{place} {number} wash the plate now" for number in range(40)]
        places = [(text.index("plate"), text.index("plate") + 5) for text in texts]
        return [task(text, *[place] * marked(n)) for n, (text, place) in enumerate(zip(texts, places, strict=True))]

    contents = set()
    for marked in (True, False):
        merging.declared.clear()
        merging.add("a", ["A"], rows("here", lambda n: n % 20 > 0), split="train")
        merging.add("t", ["A"], rows("there", lambda n: marked), split="test")  # noqa: B023
        merging.run()
        check(merging.root / "corpus", merging.root / "check")
        contents.add((merging.root / "check/findings.jsonl").read_bytes())
    (content,) = contents
    assert content.count(b"\n") == 3
    assert b"there" not in content


@pytest.mark.parametrize(
    ("answer", "spans", "expected"),
    [
        ({}, [], True),
        ({"answer": "ignore"}, [], False),
        ({"answer": "reject"}, [], False),
        ({"_view_id": "ner"}, [(3, 7)], True),
        ({"_view_id": "ner", "answer": "reject"}, [(4, 7)], True),
        ({"_view_id": "ner"}, [(0, 3)], False),
        ({"_view_id": "classification"}, [], False),
    ],
)
def test_a_finding_has_the_answers_about_it(answer, spans, expected, merging):
    merging.add("a", ["A"], [task("big cat", *spans, **{"_view_id": "ner_manual", "_annotator_id": "ann", **answer})])
    key = text_key("big cat").hex()
    finding = Finding(1.0, "missing", "A", "cat", None, (4, 7, "A"), "cat", "train", "", key, "", "", "")
    merging.run()
    locate([finding], merging.root / "corpus", {"a": ("A",)})
    assert [(place.file, place.annotator) for place in finding.answers.values()] == [("a.jsonl:1", "ann")] * expected
