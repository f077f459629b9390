"""Raw texts, predicted: each one once, in order, whatever the form, the number of workers, and interruptions."""

import gzip
import json
import os
from collections import Counter
from pathlib import Path

import pytest
import spacy
import typer
from backports import zstd
from spacy.tokens import Span
from typer.testing import CliRunner

from labelwise.commands.predict import predict_cli
from labelwise.common.errors import InputError
from labelwise.evaluate import predict_texts as module
from labelwise.evaluate.predict_texts import predict_texts
from labelwise.export.run import export


@pytest.fixture
def model(tmp_path) -> Path:
    """A pipeline that finds capitalized words."""
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler", name="ner")
    ruler.add_patterns([{"label": "NAME", "pattern": [{"IS_TITLE": True}]}])
    nlp.to_disk(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def inputs(tmp_path) -> list[Path]:
    """A folder of .txt files, one of which isn't UTF-8, a single file, and compressed JSONL with a bad line."""
    folder = tmp_path / "texts" / "deep"
    folder.mkdir(parents=True)
    for number in range(7):
        (folder / f"{number}.txt").write_text(f"Text {number}")
    (folder / "bad.txt").write_bytes(b"\xff\xfe\xff")
    (folder / "other.ann").write_text("T1\tA 0 4\tText\n")
    (folder / "own.jsonl").write_text('{"text": "Own line"}\n')
    (tmp_path / "one.txt").write_text("one Name\r\n")
    with gzip.open(tmp_path / "more.jsonl.gz", "wt") as file:
        file.write('{"text": "from Bob", "meta": {"doc": "b7"}}\n{oops\n{"text": "Eve"}\n')
    return [tmp_path / "texts", tmp_path / "one.txt", tmp_path / "more.jsonl.gz"]


NAMES = [*(f"deep/{number}.txt" for number in range(7)), "deep/own.jsonl:1", "one.txt", "b7", "more.jsonl.gz:3"]


def run(model, inputs, out, **options) -> tuple[list[dict], Counter]:
    done = list(predict_texts(model, inputs, out, **options))
    rows = [json.loads(line) for line in out.read_bytes().splitlines()]
    assert sum(part.texts for part in done) == len(rows)
    return rows, sum((part.problems for part in done), Counter())


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("part", [1, 3, 500])
@pytest.mark.long
def test_every_text_is_predicted_once_in_order(model, inputs, tmp_path, monkeypatch, workers, part):
    monkeypatch.setattr(module, "PART", part)
    rows, problems = run(model, inputs, tmp_path / "out.jsonl", workers=workers)
    assert [row["doc"] for row in rows] == NAMES
    assert [row["text"][start:end] for row in rows for start, end, _ in row["predicted"]] == [
        *["Text"] * 7, "Own", "Name", "Bob", "Eve",
    ]  # fmt: skip
    assert problems == {"not UTF-8": 1, "bad JSON": 1}
    assert rows[8]["text"] == "one Name\r\n"
    assert not (tmp_path / ".out.jsonl.labelwise.parts").exists()


def test_compressed_texts_are_read_and_damaged_ones_counted(model, tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt.gz").write_bytes(gzip.compress(b"from Bob"))
    (folder / "b.txt.zst").write_bytes(zstd.compress(b"from Eve"))
    (folder / "c.txt.gz").write_bytes(gzip.compress(b"from Ann")[:-9])
    (folder / "d.txt.zst").write_bytes(b"from Sue")
    rows, problems = run(model, [folder], tmp_path / "out.jsonl")
    assert [(row["doc"], row["text"]) for row in rows] == [("a.txt", "from Bob"), ("b.txt", "from Eve")]
    assert problems == {"damaged": 2}


def test_a_run_that_was_killed_goes_on_where_it_was(model, inputs, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PART", 2)
    out = tmp_path / "out.jsonl"
    begun = predict_texts(model, inputs, out)
    next(begun), next(begun)
    begun.close()
    assert not out.exists()
    made = sorted((tmp_path / ".out.jsonl.labelwise.parts").glob("part-*.done"))
    assert len(made) >= 2
    written = []
    write = module.write_predictions
    monkeypatch.setattr(module, "write_predictions", lambda docs, file: written.append(1) or write(docs, file))
    rows, _ = run(model, inputs, out)
    assert [row["doc"] for row in rows] == NAMES
    assert len(written) == len(NAMES) - 2 * len(made)


def test_parts_of_another_pipeline_are_not_taken(model, inputs, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PART", 2)
    out = tmp_path / "out.jsonl"
    begun = predict_texts(model, inputs, out)
    next(begun)
    begun.close()
    nlp = spacy.load(model)
    nlp.get_pipe("ner").add_patterns([{"label": "LOWER", "pattern": "from"}])
    nlp.to_disk(model)
    rows, _ = run(model, inputs, out)
    assert [row["predicted"] for row in rows if row["doc"] == "b7"] == [[[0, 4, "LOWER"], [5, 8, "NAME"]]]
    assert rows[0]["uncovered"] == {"LOWER": "none", "NAME": "none"}


def test_what_cannot_be_read_is_an_error(model, tmp_path):
    with pytest.raises(InputError, match="there is no such file or folder"):
        list(predict_texts(model, [tmp_path / "nowhere"], tmp_path / "out.jsonl"))
    with pytest.raises(InputError, match="no trained pipeline"):
        list(predict_texts(tmp_path, [], tmp_path / "out.jsonl"))


def test_a_folder_without_any_text_is_an_error(model, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty: no \.txt or \.jsonl file with a text"):
        run(model, [tmp_path / "empty"], tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_a_name_that_is_not_utf8_costs_nothing(model, tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / os.fsdecode(b"caf\xe9.txt")).write_text("From Bob")
    rows, _ = run(model, [folder], tmp_path / "out.jsonl")
    assert [len(row["predicted"]) for row in rows] == [2]


def test_the_command_counts_what_cannot_be_used(model, inputs, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    app = typer.Typer()
    app.command()(predict_cli)
    result = CliRunner().invoke(app, [*map(str, [model, *inputs]), "--out", str(tmp_path / "out.jsonl")])
    assert result.exit_code == 0, result.output
    assert "11 texts of 21 words" in result.output
    assert "not UTF-8" in result.output


def test_rules_are_exported_by_label_for_annotators(tmp_path):
    """Any pipeline of spaCy's predicts: of texts that nobody has seen, no label is known."""
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "ORG", "pattern": "Acme"}, {"label": "DOSE", "pattern": "mg"}])

    @spacy.Language.component("finds_by_itself", assigns=["doc.ents"])
    def find(doc):
        doc.ents = [*doc.ents, *(Span(doc, token.i, token.i + 1, "DAY") for token in doc if token.text == "today")]
        return doc

    nlp.add_pipe("finds_by_itself")
    nlp.to_disk(tmp_path / "rules")
    (tmp_path / "raw.jsonl").write_text('{"text": "Acme sells it today"}\n{"text": "Nothing here"}\n')
    list(predict_texts(tmp_path / "rules", [tmp_path / "raw.jsonl"], tmp_path / "found.jsonl"))
    export(tmp_path / "found.jsonl", tmp_path / "out", "prodigy-by-label")
    found = {
        file.stem: [[span["label"] for span in json.loads(line)["spans"]] for line in file.read_text().splitlines()]
        for file in (tmp_path / "out").glob("*.jsonl")
    }
    assert found == {"ORG": [["ORG"], []], "DOSE": [[], []], "DAY": [["DAY"]]}
