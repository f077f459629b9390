"""The learning curve: the line, against numpy's own fit, and a small one from trainings to the report."""

import json
from math import log

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from labelwise.check import learning_curve as module
from labelwise.check.learning_curve import MORE, fit_line, measure_curve
from labelwise.commands.learning_curve import learning_curve_cli
from labelwise.common.errors import InputError
from labelwise.corpus.manifest import read_split
from labelwise.evaluate.scores import Scores
from labelwise.report.page import render_report
from labelwise.train.recipe import Recipe
from tests.conftest import ROOT
from tests.report.report_inputs import make_docs, write_results
from tests.report.test_page import Page

CPU = ROOT / "configs" / "cpu.cfg"
TEXTS = [100, 200, 300, 400]


def scores(f: float | None, width: float | None = 0.1, support: int = 50) -> Scores:
    between = (None, None) if f is None or width is None else (f - width / 2, f + width / 2)
    return Scores(f, f, f, support, *between)


@pytest.mark.parametrize("widths", [(0.1, 0.1, 0.1, 0.1), (0.3, 0.2, 0.1, 0.05), (None, 0.2, 0.2, None)])
def test_the_line_is_that_of_numpy(widths):
    fs = (0.5, 0.62, 0.66, 0.71)
    line = fit_line(TEXTS, [scores(f, width) for f, width in zip(fs, widths, strict=True)])
    deviations = [0.1 if width is None else max(0.01, width / 3.92) for width in widths]
    x = np.log(TEXTS)
    (slope, _), covariance = np.polyfit(x, fs, 1, w=1 / np.array(deviations), cov="unscaled")
    step = log((400 + MORE) / 400)
    assert line.gain == pytest.approx(slope * step, abs=1e-4)
    half = 1.96 * np.sqrt(covariance[0, 0]) * step
    assert (line.low, line.high) == pytest.approx((slope * step - half, slope * step + half), abs=1e-4)
    assert line.f == list(fs)


def test_a_surer_curve_has_a_narrower_interval_and_a_flat_one_no_gain():
    sure, unsure = (fit_line(TEXTS, [scores(0.5, width)] * 4) for width in (0.05, 0.3))
    assert sure.gain == unsure.gain == 0
    assert sure.high - sure.low < unsure.high - unsure.low


@pytest.mark.parametrize(
    "known", [[scores(None)] * 4, [scores(None), scores(None), scores(0.5), scores(0.5)], [scores(0.5, support=0)] * 4]
)
def test_too_few_points_are_no_line(known):
    line = fit_line(TEXTS, known)
    assert (line.gain, line.low, line.high) == (None, None, None)


@pytest.mark.slow
@pytest.mark.long
def test_trainings_read_growing_shares_of_train(demo_corpus, tmp_path, monkeypatch):
    read = []
    train = module.train_pipeline

    def watched(*given, **options):
        trained = train(*given, **options)
        read.append(trained.texts["texts"])
        return trained

    monkeypatch.setattr(module, "train_pipeline", watched)
    small = {"training.max_steps": 6, "training.eval_frequency": 3, "training.batcher.size": 300}
    curve = measure_curve(Recipe(CPU, demo_corpus, overrides=small), tmp_path / "curve.json")
    total = read_split(demo_corpus / "train")["texts"]
    assert curve.texts == read == [round(share * total) for share in (0.25, 0.5, 0.75, 1)]
    assert len(curve.total.f) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["curve.json"]
    assert set(json.loads((tmp_path / "curve.json").read_text())["labels"]) == {"PERSON", "PLACE", "COMPANY", "DATE"}
    write_results(tmp_path, make_docs())
    assert "more are likely to add" not in Page(render_report(tmp_path, "cpu")).text("next")
    (tmp_path / "curve.json").rename(tmp_path / "training" / "cpu" / "learning_curve.json")
    page = Page(render_report(tmp_path, "cpu")).text("next")
    assert "More texts: of which label?" in page
    assert f"{total} texts" in page


def test_too_few_texts_are_an_error(merging, tmp_path):
    merging.add("a", ["A"], [{"text": "one"}, {"text": "two"}], split="train")
    merging.run()
    with pytest.raises(InputError, match="2 texts in train, too few"):
        measure_curve(Recipe(CPU, merging.root / "corpus"), tmp_path / "curve.json")


@pytest.mark.slow
@pytest.mark.long
def test_the_command_prints_the_label_with_the_most_to_gain_first(demo_corpus, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(module, "SHARES", (0.25, 0.5, 1.0))
    app = typer.Typer()
    app.command()(learning_curve_cli)
    result = CliRunner().invoke(app, [*map(str, (CPU, demo_corpus, tmp_path / "c.json")), "--max-steps", "3"])
    assert result.exit_code == 0, result.output
    assert "100 more" in result.output
    labels = json.loads((tmp_path / "c.json").read_text())["labels"]
    gains = {label: line["gain"] for label, line in labels.items()}
    order = sorted(gains, key=lambda label: (gains[label] is None, -(gains[label] or 0), label))
    printed = result.output.partition("100 more")[2]
    assert sorted(labels, key=printed.index) == order
