"""The report: what is in the page, without a browser."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from labelwise.commands.report import report_cli
from labelwise.common.errors import InputError
from labelwise.common.files import locked
from labelwise.corpus.merge_counts import MergeCounts
from labelwise.evaluate.results import load_results
from labelwise.report.advice import summarize
from labelwise.report.environment import format_share, hash_of
from labelwise.report.page import render_report, write_report
from labelwise.report.sections import (
    CONFUSED,
    draw_calibration,
    draw_curves,
    most_used,
    split_gold,
    tabulate_confusion,
)
from tests.conftest import another_process
from tests.report.report_inputs import HOSTILE, LABELS, make_docs, write_results

FILES = {
    "metrics/merge.json": "merge",
    "metrics/cpu.json": "evaluate-cpu",
    "training/cpu/details.json": "evaluate-cpu",
    "training/cpu/predictions.jsonl": "evaluate-cpu",
    "plots/cpu.tsv": "train-cpu",
}


class Page(HTMLParser):
    """The elements of a page, in order, and the text of each section."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.sections: dict[str, str] = {}
        self.scripts: list[str] = []
        self._section = self._tag = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._tag = tag
        self.handle_data(" ")
        if tag == "section":
            self._section = dict(attrs)["id"]

    def handle_data(self, data):
        if self._tag == "script" and data.strip():
            self.scripts.append(data)
        elif self._section:
            self.sections[self._section] = self.sections.get(self._section, "") + data

    def handle_endtag(self, tag):
        self._tag = ""
        self._section = "" if tag == "section" else self._section

    def text(self, section: str) -> str:
        return " ".join(self.sections[section].split())


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("results")
    write_results(root, make_docs())
    return root


@pytest.fixture(scope="module")
def html(results) -> str:
    return render_report(results, "cpu")


@pytest.fixture
def own(tmp_path) -> Path:
    """Results that a test may spoil."""
    write_results(tmp_path, make_docs())
    return tmp_path


def test_the_page_has_all_sections_and_each_is_in_the_navigation(html):
    page = Page(html)
    ids = [attrs["id"] for tag, attrs in page.tags if tag == "section"]
    assert ids == [
        "decide", "card", "trust", "next", "summary", "annotations", "lost", "coverage", "scores", "curves",
        "confusion", "frequent", "examples",
    ]  # fmt: skip
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a"]
    shown = [f"#{name}" for name in ids[2:]]
    assert [link for link in links if not set("&=") & set(link)][-len(ids) + 1 :] == [*shown, "#decide"]
    assert all(link.startswith("#examples&") for link in links if "&" in link)
    assert "<strong>Missing:" not in html
    assert html.startswith("<!DOCTYPE html>\n")


@pytest.mark.parametrize(
    ("section", "texts"),
    [
        ("summary", ["F, all gold", "95% interval", "F, flat gold", "Macro F", "Texts 60 300 gold spans"]),
        ("annotations", ["merged 1,600 97%", "no token boundary 5 < 1%", "entity 1,680 97%"]),
        ("coverage", ["PLACE 220 55% 80 20% 100 25%", "PERSON 400 100% 0 0% 0 0% 12"]),
        (
            "lost",
            [
                "nested: PERSON → PLACE 32 32 recognizer: per-label learns both",
                "no token boundary: 0|a 5 0",
                "- '(?<=[0-9])(?=[^\\W\\d_])' would save 5 of 5",
                "5ml",
            ],
        ),
        ("scores", ["PERSON", "NEVER_SEEN – – –", "0.930 12 texts", "In train", "700"]),
        (
            "curves",
            ["Scores on dev", "Loss of tok2vec per word", "Loss of ner per word", "F: last 0.874, highest 0.874"],
        ),
        ("frequent", ["Missed", "Wrong label and boundaries", "Last spring DRUG 15"]),
        ("examples", ["at most 10 for each kind and label", "of 149 mistakes", "like this"]),
    ],
)
def test_sections_show_the_results(html, section, texts):
    shown = Page(html).text(section)
    for text in texts:
        assert text in shown


def test_equal_results_give_equal_bytes(results, tmp_path):
    for name in ("one.html", "other.html"):
        write_report(results, "cpu", tmp_path / name)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "other.html").read_bytes()


@pytest.mark.parametrize(("file", "command"), FILES.items())
def test_a_missing_file_leaves_a_remedy(own, file, command):
    (own / file).unlink()
    html = render_report(own, "cpu")
    assert file in html
    assert f"<code>weasel run {command}</code>" in html


def test_a_merge_of_nothing_is_shown_as_that(own):
    counts = {"rows_read": 0, "spans_read": 0, "rows": {}, "spans": {}, "texts": {}, "labels": {"A": {"none": 5}}}
    (own / "metrics" / "merge.json").write_text(json.dumps(counts))
    sentence = "Every row and every span that the merge read has one outcome, which is counted."
    assert Page(render_report(own, "cpu")).text("annotations") == f"Where every annotation went {sentence}"


def test_scores_of_nothing_are_dashes(own):
    nothing = {"p": None, "r": None, "f": None}
    scores = {**nothing, "support": 0, "macro": nothing, "labels": {}}
    metrics = {"texts": 0, "all_gold": scores, "flat_gold": scores}
    (own / "metrics" / "cpu.json").write_text(json.dumps(metrics))
    page = Page(render_report(own, "cpu"))
    assert "F, all gold – F, flat gold –" in page.text("summary")
    assert "all – – –" in page.text("scores")


def test_a_curve_that_has_just_begun_is_called_empty(own):
    file = "plots/cpu.tsv"
    path = own / file
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert f"<strong>Empty:</strong> <code>{file}</code>" in render_report(own, "cpu")


def test_no_results_are_an_error(own):
    (own / "metrics" / "merge.json").unlink()
    with pytest.raises(InputError, match="there is nothing to report about pipeline 'gpu'; run evaluate-gpu"):
        render_report(own, "gpu")


@pytest.mark.parametrize(
    ("file", "content", "match"),
    [
        ("metrics/merge.json", "{", r"merge.json: .*run merge again"),
        ("metrics/merge.json", "[]", r"merge.json: .*Expected `object`.*run merge again"),
        ("metrics/cpu.json", '{"other": ' + "[" * 100_000, r"metrics/cpu.json: .*run evaluate-cpu again"),
        ("metrics/cpu.json", '{"texts": "many"}', r"metrics/cpu.json: .*\$\.texts.*run evaluate-cpu again"),
        ("training/cpu/details.json", "{}", r"details.json: .*run evaluate-cpu again"),
        ("training/cpu/predictions.jsonl", "{}\n", r"predictions.jsonl:1: not a prediction"),
        ("plots/cpu.tsv", "", r"cpu.tsv:1: not a header that begins with 'step'; run train-cpu again"),
        ("plots/cpu.tsv", "step\tscore\n100\tgood\n", r"cpu.tsv:2: .*'good'; run train-cpu again"),
        ("plots/cpu.tsv", "step\tscore\n100\n", r"cpu.tsv:2: not 2 finite numbers"),
        ("training/cpu/resources.tsv", "seconds\tmemory_mb\n1\tinf\n", r"resources.tsv:2: not 2 finite numbers"),
    ],
)
def test_a_bad_file_is_named_with_a_remedy(own, file, content, match):
    (own / file).write_text(content)
    with pytest.raises(InputError, match=match):
        render_report(own, "cpu")


def test_a_file_that_isnt_text_is_named(own):
    for file in ("plots/cpu.tsv", "metrics/cpu.json"):
        before = (own / file).read_bytes()
        (own / file).write_bytes(b"\xff\xfe\x00")
        with pytest.raises(InputError, match=file):
            render_report(own, "cpu")
        (own / file).write_bytes(before)


def test_corpora_bring_no_element_into_the_page(html):
    page = Page(html)
    assert [attrs.get("id") for tag, attrs in page.tags if tag == "script"] == ["cards", "totals", None]
    assert not {tag for tag, _ in page.tags} & {"img", "b", "link", "iframe"}
    for section in ("coverage", "scores", "confusion", "frequent", "examples"):
        assert HOSTILE in page.text(section)
    assert "</script><b>bold</b>" in page.text("examples")


def test_nor_does_any_other_name_in_the_results_of_strangers(own):
    """Outcomes, splits, schemes, columns, and keys of texts, each with markup that would end what it may stand in."""
    markup = "\"'></title></script></style><img src=x onerror=alert(1)>{{7*7}}"
    path = own / "metrics" / "merge.json"
    ledger = json.loads(path.read_text(encoding="utf8"))
    for name in ("rows", "spans", "texts"):
        ledger[name] = {f"{key}{markup}": n for key, n in ledger[name].items()}
    path.write_text(json.dumps(ledger | {"datasets": {markup: 3}, "undeclared": {f"{markup}: A": 3}}))
    for path in (own / "training" / "cpu" / "details.json", own / "metrics" / "cpu.json"):
        path.write_text(path.read_text(encoding="utf8").replace("NEVER_SEEN", json.dumps(markup)[1:-1]))
    path = own / "training" / "cpu" / "predictions.jsonl"
    path.write_text(path.read_text(encoding="utf8").replace("0" * 20, json.dumps(markup)[1:-1]))
    for path in (own / "plots").iterdir():
        first, rest = path.read_text(encoding="utf8").split("\n", 1)
        path.write_text(f"{first}\tloss_{markup}\n" + rest.replace("\n", "\t1\n"))
    page = Page(html := render_report(own, "cpu"))
    assert html.count("{{7*7}}") > 20
    assert not {tag for tag, _ in page.tags} & {"img", "b", "link", "iframe"}
    assert [attrs.get("id") for tag, attrs in page.tags if tag == "script"] == ["cards", "totals", None]
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]


def test_the_page_needs_nothing_else(html):
    page = Page(html)
    assert not [attrs for _, attrs in page.tags if {"src", "data", "action"} & attrs.keys()]
    assert all(attrs.get("href", "#").startswith("#") for _, attrs in page.tags)
    assert "http://" not in html
    assert "https://" not in html
    assert "url(" not in html


def test_the_policy_of_the_page_allows_its_own_script_alone(html):
    page = Page(html)
    policy = next(attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv"))
    assert "default-src 'none'" in policy
    assert f"script-src '{hash_of(page.scripts[-1])}'" in policy


def test_totals_are_there_for_each_choice(html):
    totals = json.loads(Page(html).scripts[1])
    kinds = [totals[f"{kind} *"] for kind in range(5)]
    assert totals["* *"] == sum(kinds) == 149
    place = LABELS.index("PLACE")
    assert totals[f"* {place}"] == sum(totals.get(f"{kind} {place}", 0) for kind in range(5))


def test_where_gold_overlaps_f_of_all_spans_is_beside_the_others(tmp_path):
    write_results(tmp_path, make_docs())
    assert "all spans" not in Page(render_report(tmp_path, "cpu")).text("summary")
    assert "F all spans" not in Page(render_report(tmp_path, "cpu")).text("scores")
    path = tmp_path / "metrics/cpu.json"
    metrics = json.loads(path.read_text())
    other = json.loads(json.dumps(metrics["all_gold"]))
    other["f"], other["macro"]["f"], other["labels"]["PLACE"]["f"] = 0.111, 0.222, 0.333
    path.write_text(json.dumps({**metrics, "all_spans": other}))
    page = Page(render_report(tmp_path, "cpu"))
    assert "F, all spans 0.111 also those that overlap" in page.text("summary")
    scores = page.text("scores")
    assert "F all spans" in scores
    assert [scores.count(figure) for figure in ("0.111", "0.222", "0.333")] == [1, 1, 1]


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0%"), (0.001, "< 1%"), (0.25, "25%"), (0.9999, "> 99%"), (1, "100%"), (0.01, "1%")]
)
def test_shares_are_rounded_but_not_to_nothing_or_all(share, text):
    assert format_share(share) == text


def test_coverage_is_told_by_data_set(html):
    told = Page(html).text("coverage").partition("The same by data set")[2]
    assert "Label person place teach PERSON 400 PLACE 20 200 (80) COMPANY" in told


def test_of_many_data_sets_those_that_cover_the_most_are_shown():
    many = {f"{number:02d}": {"A": number} for number in range(30)}
    merge = MergeCounts({}, {}, {"A": {"complete": 29}}, complete=many, partial={"teach": {"A": 100}})
    assert most_used(merge) == ["teach", *(f"{number:02d}" for number in range(29, 10, -1))]


def test_calibration_is_with_the_scores(html):
    section = Page(html).text("scores")
    assert "Can probabilities be trusted?" in section
    assert "last 0.8, highest 0.8" in section
    assert draw_calibration([]) is None


def test_what_became_of_gold_adds_up_to_it():
    counts = {
        "gold": 100,
        "entity": 90,
        "nested": 6,
        "learnt as well": 4,
        "rejected": 50,
        "complete": 7,
        "realigned": 3,
    }
    assert split_gold(counts) == {"entity": 90, "learnt as well": 4, "lost": 6}


def test_of_many_labels_the_confusion_has_those_with_the_most_mistakes():
    """`a` has none, and all others one, but for `worst`."""
    others = {f"label {number:02d}": {"worst": 1} for number in range(60)}
    table = tabulate_confusion({"a": {"a": 99}, **others})
    assert table["labels"] == ["(nothing)", *sorted(others)[: CONFUSED - 1], "worst"]
    assert table["hidden"] == 62 - CONFUSED
    assert [len(row) for _, row in table["rows"]] == [CONFUSED + 1] * (CONFUSED + 1)
    assert tabulate_confusion(dict(list(others.items())[:5]))["hidden"] == 0


def test_the_confusion_is_square_with_nothing_first():
    table = tabulate_confusion({"zone": {"zone": 2, "(nothing)": 1}, "(nothing)": {"A": 3}})
    assert table["labels"] == ["(nothing)", "A", "zone"]
    assert table["rows"] == [("(nothing)", [0, 3, 0]), ("A", [0, 0, 0]), ("zone", [1, 0, 2])]


def test_a_score_of_its_own_and_a_gradient_scale_are_drawn():
    columns = {"step": [1.0], "score": [0.5], "ents_f": [0.4], "loss_ner": [9.0], "grad_scale": [64.0]}
    charts = dict(draw_curves(columns))
    assert list(charts) == ["Scores on dev", "Loss of ner", "Grad scale"]
    assert [line.name for line in charts["Scores on dev"].lines] == ["score", "F"]


def test_losses_are_per_word_and_without_the_first_step():
    """Sums since the last evaluation look like a loss that grows, where evaluations lie further apart."""
    columns = {
        "step": [0, 100, 300],
        "words": [10, 1010, 3010],
        "loss_ner": [50.0, 2000.0, 3000.0],
        "score": [0.0, 0.5, 0.6],
    }
    (line,) = dict(draw_curves(columns))["Loss of ner per word"].lines
    assert (line.last, line.highest) == (1.5, 2.0)


def run(*arguments: str):
    app = typer.Typer()
    app.command()(report_cli)
    return CliRunner().invoke(app, arguments)


def test_the_command_writes_the_page(results, tmp_path):
    out = tmp_path / "reports" / "cpu.html"
    result = run(str(out), "--pipeline", "cpu", "--root", str(results))
    assert result.exit_code == 0, result.output
    assert out.read_text(encoding="utf8") == render_report(results, "cpu")
    printed = " ".join(result.output.split())
    total = json.loads((results / "metrics/cpu.json").read_text())["all_gold"]
    assert "Label NEVER_SEEN without gold in test" in printed
    first = summarize(load_results(results, "cpu")).tasks[0]
    last = f"F {total['f']:.3f} ({total['f_low']:.3f} to {total['f_high']:.3f}) First, {first.label}: {first.do}: "
    assert last in printed
    assert printed.endswith(f"weasel run fix {out.as_uri()}")
    assert result.output.splitlines()[-2:] == [first.line(), out.as_uri()], "a command that is wrapped can't be copied"
    assert "\x1b[" not in printed


def test_an_undertrained_pipeline_is_trained_longer_first_and_the_gpu_recommends_no_transformer(tmp_path):
    """Of PERSON, words that train never marks are hardly found, and dev rose by a point at the last evaluation."""
    for pipeline in ("cpu", "gpu"):
        root = tmp_path / pipeline
        write_results(root, make_docs(), pipeline)
        file = root / "training" / pipeline / "details.json"
        details = json.loads(file.read_text())
        details["familiarity"]["labels"]["PERSON"]["never"] = {"gold": 70, "found": 2, "missed": 68}
        file.write_text(json.dumps(details))
        with (root / "plots" / f"{pipeline}.tsv").open("a") as curve:
            curve.write("1300\t4\t2616900\t3500\t8000\t0.92\t0.92\t0.92\t0.92\n")
        result = run(str(tmp_path / "page.html"), "--pipeline", pipeline, "--root", str(root))
        command = f"weasel run {'all' if pipeline == 'cpu' else 'gpu'}"
        assert result.output.splitlines()[-2] == (
            f"First: train longer ({pipeline}_steps: 2600 in project.yml): {command}"
        )
        first_screen = Page((tmp_path / "page.html").read_text(encoding="utf8")).text("decide")
        assert first_screen.index("train longer") < first_screen.index("PERSON: ")
        assert ("a transformer, or word vectors" in first_screen) == (pipeline == "cpu")
        assert ("annotate 50 more texts" in first_screen) == (pipeline == "gpu")


def test_the_command_fails_without_a_traceback_and_leaves_what_was_there(own):
    out = own / "report.html"
    out.write_text("before")
    (own / "plots" / "cpu.tsv").write_text("")
    result = run(str(out), "--pipeline", "cpu", "--root", str(own))
    assert result.exit_code == 1
    assert "No report was written" in result.output
    assert "Traceback" not in result.output
    assert out.read_text() == "before"


def test_a_page_that_another_process_is_writing_is_refused(own):
    with (
        another_process(locked(own / "cpu.html")),
        pytest.raises(InputError, match=r"cpu\.html: another process is writing this; wait until it ends"),
    ):
        write_report(own, "cpu", own / "cpu.html")


def test_predictions_of_another_run_are_refused(own):
    path = own / "metrics" / "cpu.json"
    metrics = json.loads(path.read_text(encoding="utf8"))
    path.write_text(json.dumps({**metrics, "predictions_digest": "another"}), encoding="utf8")
    with pytest.raises(InputError, match=r"predictions\.jsonl: not the predictions that the scores were computed from"):
        render_report(own, "cpu")


def test_what_is_not_scored_is_no_mistake(own):
    """The scores know fewer labels than the pipeline: predictions of the others can't be told right or wrong."""

    def labels_to_choose() -> list[str]:
        page = render_report(own, "cpu")
        choice = page[page.index('id="by-label"') :]
        return re.findall(r"<option.*?>(.*?)</option>", choice[: choice.index("</select>")])

    path = own / "metrics" / "cpu.json"
    metrics = json.loads(path.read_text(encoding="utf8"))
    everything, *labels = labels_to_choose()
    kept = next(label for label in labels if label in metrics["all_gold"]["labels"])
    metrics["all_gold"]["labels"] = {kept: metrics["all_gold"]["labels"][kept]}
    path.write_text(json.dumps(metrics), encoding="utf8")
    assert len(labels) > 1
    assert labels_to_choose() == [everything, kept]
