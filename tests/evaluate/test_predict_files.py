import os
from pathlib import Path

import pytest

from labelwise.base.errors import InputError
from labelwise.evaluate import predict_files as module
from labelwise.evaluate.predict import predict_texts
from labelwise.evaluate.predict_files import predict_files
from labelwise.evaluate.predictions import list_predictions
from labelwise.export.export_corpus import export
from scripts.predict import predict_cli
from tests.conftest import call, read_jsonl, save_ruler, write_jsonl

PARTS = ["a.jsonl.jsonl", "a.txt.jsonl", "news/may/1.txt.jsonl", "news/may/3.txt.jsonl", "z.txt.jsonl"]


@pytest.fixture
def model(tmp_path) -> Path:
    return save_ruler(tmp_path / "model", ("NAME", [{"IS_TITLE": True}]))


@pytest.fixture
def texts(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(module, "PART", 2)
    folder = tmp_path / "texts"
    write_jsonl(folder / "a.jsonl", [{"text": "from Bob"}, "{oops", {"text": "to Eve"}])
    (folder / "news/may").mkdir(parents=True)
    for name in ("a", "news/may/1", "news/may/2", "news/may/3", "z"):
        (folder / f"{name}.txt").write_text(f"Text {name}")
    return folder


def predict(model: Path, texts: Path, out: Path, **options) -> tuple[int, int, dict[str, int]]:
    skipped, *done = predict_files(model, [texts], out, **options)
    now = sum(counts.texts for counts in done)
    problems = sum((counts.problems for counts in done), skipped.problems)
    return now, now + skipped.texts, dict(problems)


def written(out: Path) -> dict[str, tuple[bytes, int]]:
    names = [path.relative_to(out).as_posix() for path in out.rglob("*.jsonl")]
    return {name: ((out / name).read_bytes(), (out / name).stat().st_ino) for name in names}


@pytest.mark.parametrize("workers", [1, 2])
def test_files_of_predictions_add_up_to_a_single_files(model, texts, tmp_path, workers):
    out = tmp_path / "out"
    assert predict(model, texts, out, workers=workers) == (7, 7, {"bad JSON": 1})
    list(predict_texts(model, [texts], tmp_path / "one.jsonl"))
    assert sorted(written(out)) == PARTS
    together = b"".join((out / name).read_bytes() for name in PARTS)
    assert sorted(together.splitlines()) == sorted((tmp_path / "one.jsonl").read_bytes().splitlines())
    assert [row["doc"] for row in read_jsonl(out / "news/may/1.txt.jsonl")] == ["news/may/1.txt", "news/may/2.txt"]
    assert not [path for path in out.parent.iterdir() if path.name.startswith(".out")]


def test_what_is_finished_is_skipped_and_what_changed_or_was_killed_is_done_again(model, texts, tmp_path):
    out = tmp_path / "out"
    predict(model, texts, out)
    before = written(out)
    assert predict(model, texts, out) == (0, 7, {"bad JSON": 1})
    assert written(out) == before
    write_jsonl(texts / "a.jsonl", [{"text": "from Bob"}])
    (out / "z.txt.jsonl.done").unlink()  # it was killed before it was done
    os.utime(texts / "news/may/3.txt", ns=(1, 1))
    (out.with_name(".out.labelwise.parts") / "job-1").mkdir(parents=True)
    assert predict(model, texts, out) == (3, 6, {})
    after = written(out)
    assert {name for name in PARTS if before[name] != after[name]} == {PARTS[0], PARTS[3], PARTS[4]}


def test_a_text_that_joins_others_is_predicted_once(model, texts, tmp_path):
    out = tmp_path / "out"
    write_jsonl(tmp_path / "other.jsonl", [{"text": "by Ann"}])
    list(predict_files(model, [tmp_path / "other.jsonl"], out))
    predict(model, texts, out)
    (texts / "news/may/0.txt").write_text("Text 0")
    assert predict(model, texts, out) == (4, 8, {"bad JSON": 1})
    names = [row["doc"] for file in list_predictions(out) for row in read_jsonl(file)]
    assert sorted(names) == [
        *("a.jsonl:1", "a.jsonl:3", "a.txt"),
        *(f"news/may/{number}.txt" for number in range(4)),
        *("other.jsonl:1", "z.txt"),
    ]


def test_a_folder_has_the_predictions_of_one_pipeline_and_nothing_else_is_touched(model, texts, tmp_path):
    predict(model, texts, tmp_path / "out")
    other = save_ruler(tmp_path / "other", ("NAME", "Bob"))
    with pytest.raises(InputError, match="out: its predictions are of another pipeline, or version; write elsewhere"):
        predict(other, texts, tmp_path / "out")
    with pytest.raises(InputError, match=r"isn't a folder of predictions: it has no predicted\.json"):
        predict(model, texts, texts)


@pytest.mark.parametrize("name", ["a.jsonl", "A.jsonl", "z.txt", "news/may/2.txt"])
def test_inputs_of_one_name_are_refused_and_so_is_none(model, texts, tmp_path, name):
    """On macOS, names that differ in case are equal."""
    write_jsonl(tmp_path / "more" / name, [{"text": "other"}])
    both = rf"more/{name} and .*texts/{name.lower()}: both would have the name {name} in the output; rename one"
    with pytest.raises(InputError, match=both):
        list(predict_files(model, [texts, tmp_path / "more"], tmp_path / "out"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty: no \.txt or \.jsonl file"):
        list(predict_files(model, [tmp_path / "empty"], tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("predict", [predict_files, predict_texts])
def test_predictions_among_the_raw_texts_are_refused(predict, model, texts, monkeypatch):
    monkeypatch.chdir(texts)
    with pytest.raises(InputError, match=r"^news/out\.jsonl: it is among the texts of .*texts; write elsewhere"):
        list(predict(model, [texts], Path("news/out.jsonl")))
    assert not Path("news/out.jsonl").exists()


def test_export_reads_the_folder_as_it_reads_a_file(model, texts, tmp_path):
    call(predict_cli, model, texts, "--out", tmp_path / "out")
    (tmp_path / "out/z.txt.jsonl.done").unlink()  # not finished
    rows = [row for name in PARTS[:-1] for row in read_jsonl(tmp_path / "out" / name)]
    write_jsonl(tmp_path / "one.jsonl", rows)
    for name in ("out", "one.jsonl"):
        assert export(tmp_path / name, tmp_path / f"{name}-tasks", "prodigy").rows == 6
    made = [read_jsonl(next((tmp_path / f"{name}-tasks").glob("*.jsonl"))) for name in ("out", "one.jsonl")]
    names = [[task["meta"].pop("predictions", None) for task in tasks] for tasks in made]
    assert made[0] == made[1]
    assert names
