import json
import os
import re
import shutil
from html import unescape
from html.parser import HTMLParser
from itertools import islice, pairwise
from pathlib import Path

import msgspec
import pytest

from labelwise.base.errors import InputError
from labelwise.compare.changed_spans import ChangedSpan
from labelwise.corpus.pipeline import make_nlp
from labelwise.corpus.tokenizer import read_tokenizer
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.evaluate.scores import Metrics
from labelwise.evaluate.tables import Tables
from labelwise.report.mistakes import KINDS
from labelwise.report.page import Baseline, hash_of, write_report
from labelwise.report.review_queue import draw
from labelwise.report.unanswered import find_unanswered
from scripts.report import report_cli
from tests.conftest import ROOT, call, save_ruler, task, write_jsonl
from tests.evaluate.test_scoring import keyed
from tests.report.report_inputs import HOSTILE, LABELS, make_docs, write_results

ONE = dict.fromkeys("prf", 1.0)
OLD = json.dumps({"texts": 1, "all_gold": {**ONE, "macro": ONE, "labels": {"A": ONE}}}).encode()


class Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.tags: list[tuple[str, dict]] = []
        self.scripts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] == "script" and data.strip():
            self.scripts.append(data)

    def text(self, section: str = "") -> str:
        element = rf'<section[^>]*id="{section}".*?</section>' if section else "<h1.*?</h1>"
        match = re.search(f"(?s){element}", self.html)[0]
        return " ".join(unescape(re.sub(r"<[^>]+>", " " if section else "", match)).split())


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("results")
    write_results(root, make_docs())
    return root


@pytest.fixture(scope="module")
def html(results) -> str:
    return render(results, "cpu")


@pytest.fixture
def own(tmp_path) -> Path:
    write_results(tmp_path, make_docs())
    return tmp_path


def render(root: Path, pipeline: str, **options) -> str:
    write_report(root, pipeline, root / "report.html", **options)
    return (root / "report.html").read_text(encoding="utf8")


def test_goals_have_a_column_and_precision_by_recall(tmp_path):
    docs = make_docs()
    for doc in docs:
        doc.found = [(*span, 0.9 - 0.1 * (number % 3)) for number, span in enumerate(doc.predicted)]
    write_results(tmp_path, docs)
    plain = render(tmp_path, "cpu")
    assert "Goal, test" not in plain
    assert "precision by recall" not in plain
    path, labels = tmp_path / "metrics/cpu.json", ("PERSON", "PLACE")
    metrics = json.loads(path.read_text())
    row = {"figure": "recall", "goal": 0.9, "value": 0.875, "low": 0.8, "high": 0.93}
    metrics["aimed"] = {label: {**row, "bound": bound} for label, bound in zip(labels, (0.85, 0.91), strict=True)}
    path.write_text(json.dumps(metrics))
    page = render(tmp_path, "cpu")
    assert page.count("0.875 (0.800 to 0.930)") == 2
    assert "1 label can't reach the goal on dev. At best: PERSON (recall 0.850)." in unescape(page)
    [points] = re.findall(
        r'aria-label="PERSON on test: precision by recall.*?goal is recall 0.9".*?points="(.*?)"', page, re.DOTALL
    )
    last = [float(one) for one in points.split()[-1].split(",")]
    own = metrics["all_gold"]["labels"]["PERSON"]
    assert last == pytest.approx([300 * own["r"], 110 * (1 - own["p"])], abs=0.1), "all spans found are the entities"


def test_a_curve_of_learning_is_shown_if_it_is_of_this_pipeline(own):
    change = {"difference": 0.05, "low": 0.01, "high": 0.09, "significant": True}
    f = {"f": {"half": 0.7, "a quarter": 0.6, "all": 0.75}, "changes": {"a quarter": change, "all": change}}
    curve = {"pipeline_digest": "89abcdef01234567", "texts": {}, "micro": f, "labels": {"PLACE": f}}
    for digest, said in (
        ("other", "Estimate the gain from doubling the texts: weasel run train-curve"),
        (
            "89abcdef01234567",
            "Twice the training texts should add about 0.050 to F1 on dev (+0.010 to +0.090), or less: the last",
        ),
        ("89abcdef01234567", "Labels with a significant gain: PLACE +0.050."),
    ):
        (own / "metrics/train_curve.json").write_text(json.dumps(curve | {"pipeline_digest": digest}))
        assert said in Page(render(own, "cpu")).text("label")


# By section, what tells a reader what to do next, and how.
SECTIONS = {
    "labels": [
        "1 label not in the test set, so no F1: NEVER_SEEN.",
        "annotate more texts",
        "Annotators agree",
        "0.93 12 texts",
    ],
    "fix": ["When you are done, save and run python -m scripts.import_decisions"],
    "gold": ["67 annotated in train annotate more texts"],
    "label": [
        "test spans are missed, with words that are annotated in train; for 100 more",
        "F1 on dev by training step: 0.870 at best, at step 1,100",
        "weasel run predict",
        "--format brat",
    ],
    "mistakes": [],
    "trust": ["No gold of label NEVER_SEEN in test"],
}


def test_the_page_begins_with_a_sentence_and_has_all_sections(html):
    page = Page(html)
    assert [attrs["id"] for tag, attrs in page.tags if tag == "section"] == [*SECTIONS]
    for section, texts in SECTIONS.items():
        assert [text for text in texts if text not in page.text(section)] == []
    assert html.startswith("<!DOCTYPE html>\n")
    assert "CPU pipeline <code>89abcdef</code> · corpus <code>01234567</code>" in html
    message = (
        "0 of 6 labels are ready; 5 not ready, 1 with too few test spans. Of 149 errors on test, 67 are missed spans."
    )
    assert page.text() == message
    counts = [item["count"] for item in json.loads(page.scripts[0])["mistakes"]]
    assert counts == sorted(counts, reverse=True), "the most frequent words first"


@pytest.mark.guarantee("dev-and-test")
@pytest.mark.parametrize(
    ("texts", "split", "message"),
    [
        (
            12,
            "dev",
            "Learn from errors on dev: if you improve a pipeline by its errors on test, F1 on test is no longer a fair",
        ),
        (
            9,
            "test",
            "These are errors on test, because dev has 9 texts: raise dev_ratio in project.yml. After you improve",
        ),
        (
            0,
            "test",
            "These are errors on test, because dev wasn’t evaluated. After you improve the pipeline by them, F1 on",
        ),
    ],
)
def test_errors_to_learn_from_are_those_on_dev_and_scores_those_on_test(texts, split, message, html, tmp_path):
    """All that is predicted on dev is a DRUG of six words, which test lacks."""
    gold, wrong = make_docs()[0].gold, (0, 37, "DRUG")
    dev = [msgspec.structs.replace(doc, predicted=[wrong], gold=gold) for doc in keyed(make_docs()[:texts])]
    write_results(tmp_path, make_docs(), dev=dev)
    page, alone = Page(render(tmp_path, "cpu")), Page(html)
    cards = json.loads(page.scripts[0])
    assert message in page.text("gold")
    assert {len(mistake["key"]) for mistake in cards["mistakes"]} == ({24} if split == "dev" else {32}), (
        "keys on dev are short"
    )
    assert (cards["split"], f"Errors on {split}" in page.text("mistakes")) == (split, True)
    errors, on = (6 * texts, texts) if split == "dev" else (149, 60)
    assert f"{errors} errors on {on} {split} texts" in page.text("gold")
    # What test says stays: F1, intervals and verdicts.
    assert page.text().partition(".")[0] == alone.text().partition(".")[0]
    f, same = (
        re.search(r"F1 0\.\d+ \(0\.\d+ to 0\.\d+\) on 60 test texts", content.html)[0] for content in (page, alone)
    )
    assert f == same


@pytest.mark.parametrize("pipeline", ["cpu", "small", "gpu"])
def test_a_small_transformer_is_advised_where_train_lacks_the_words(pipeline, html, tmp_path):
    assert "weasel run small" not in Page(html).text("label"), "where train marks the words"
    write_results(tmp_path, make_docs(), pipeline, in_train=(0, 0))
    shown = Page(render(tmp_path, pipeline)).text("label")
    assert "missed, with words that are rare or absent in train; for 100 more spans, annotate about 100 texts." in shown
    assert ("weasel run small" in shown) == (pipeline == "cpu")


@pytest.mark.parametrize(
    ("states", "message"), [((None, "partial", "none"), True), ((None, "none"), True), (("partial", "none"), False)]
)
def test_texts_for_more_spans_are_counted_where_all_spans_of_the_label_are_marked(states, message, tmp_path):
    docs = make_docs()
    for number, doc in enumerate(docs):
        state = states[number % len(states)]
        doc.uncovered = dict.fromkeys(LABELS, state) if state else {}
        doc.gold = doc.gold if state != "none" else []
        doc.predicted = [] if state else doc.predicted
    write_results(tmp_path, docs, in_train=(0, 0))
    page = Page(render(tmp_path, "cpu")).text("label")
    assert " with words that are rare or absent in train" in page
    assert ("for 100 more spans, annotate about 100 texts." in page) == ("for 100 more spans" in page) == message


def test_without_findings_or_tables_the_rest_is_there_and_without_any_results_it_is_an_error(own):
    (own / "training/check/findings.jsonl").unlink()
    (own / "training/cpu/pairs.parquet").unlink()
    (own / "metrics/merge.json").unlink()
    page = Page(render(own, "cpu"))
    assert "No suspects: by its word counts, no annotation contradicts the others." in page.text("fix")
    assert "PERSON" in page.text("labels")
    with pytest.raises(InputError, match=r"metrics/gpu\.json: there is no such file; evaluate gpu, or"):
        render(own, "gpu")


@pytest.mark.parametrize(
    ("file", "content", "match"),
    [
        ("metrics/merge.json", b"[]", r"merge.json: .*Expected `object`.*run merge again"),
        ("metrics/cpu.json", b'{"other": ' + b"[" * 100_000, r"metrics/cpu.json: .*evaluate cpu again"),
        ("metrics/cpu.json", b"\xff\xfe\x00", r"metrics/cpu.json"),
        ("metrics/cpu.json", OLD, r"metrics/cpu.json: it has no `mistakes`.*; evaluate cpu again"),
        ("training/cpu/pairs.parquet", b"{}", r"pairs.parquet: not the pairs that the scores were computed from"),
        ("training/check/findings.jsonl", b"{}", r"findings.jsonl: not the findings of a check .*; run it again"),
        ("training/check/findings.jsonl", b'{"digest": ""}\n{"form": "a"}', r"\(0\.3\.0 wrote them\); run it again"),
        ("training/check/findings.jsonl", b'{"digest": ""}\n{"label": "a"}', r"\(.*missing required.*\); run it again"),
        ("metrics/cpu.json", OLD.replace(b"{", b'{"untaught": [], ', 1), r"field `untaught`.*; evaluate cpu again"),
        ("plots/cpu.tsv", b"step\tscore\n100\tgood\n", r"cpu.tsv: .*'good'.*; train cpu again"),
        ("plots/cpu.tsv", b"other\n1\n", r"cpu.tsv: .*KeyError.*step"),
    ],
)
def test_a_bad_file_is_named_with_a_remedy(own, file, content, match):
    (own / file).write_bytes(content)
    with pytest.raises(InputError, match=match):
        render(own, "cpu")


@pytest.mark.guarantee("markup")
def test_corpora_bring_no_element_into_the_page(html):
    page = Page(html)
    assert [attrs.get("id") for tag, attrs in page.tags if tag == "script"] == ["cards", None]
    assert not {tag for tag, _ in page.tags} & {"img", "b", "link", "iframe"}
    assert HOSTILE in page.text("labels")
    cards = json.loads(page.scripts[0])
    assert HOSTILE in {mistake["gold_label"] for mistake in cards["mistakes"]}
    assert cards["cases"][-1]["surface"] == HOSTILE


def test_names_in_strangers_results_are_escaped(own):
    markup = "\"'></title></script></style><img src=x onerror=alert(1)>{{7*7}}"
    path = own / "metrics" / "merge.json"
    ledger = json.loads(path.read_text(encoding="utf8"))
    for name in ("rows", "spans", "texts"):
        ledger[name] = {f"{key}{markup}": n for key, n in ledger[name].items()}
    path.write_text(json.dumps(ledger | {"undeclared": {markup: {f"A{markup}": 3}}}))
    for name in ("metrics/cpu.json", "training/check/findings.jsonl"):
        content = (own / name).read_text(encoding="utf8").replace("NEVER_SEEN", json.dumps(markup)[1:-1])
        (own / name).write_text(content.replace("may be wrong", json.dumps(markup)[1:-1]))
    page = Page(html := render(own, "cpu"))
    assert html.count("{{7*7}}") > 5
    assert not {tag for tag, _ in page.tags} & {"img", "b", "link", "iframe"}
    assert [attrs.get("id") for tag, attrs in page.tags if tag == "script"] == ["cards", None]
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]


@pytest.mark.guarantee("markup")
def test_the_page_needs_nothing_else(html):
    page = Page(html)
    assert not [attrs for _, attrs in page.tags if {"src", "data", "action"} & attrs.keys()]
    assert all(attrs.get("href", "#").startswith("#") for _, attrs in page.tags)
    assert "http://" not in html
    assert "https://" not in html
    assert "url(" not in html
    policy = next(attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv"))
    assert "default-src 'none'" in policy
    assert f"script-src '{hash_of(page.scripts[-1])}'" in policy


def test_after_a_fix_the_page_says_what_it_was_worth(own):
    before = msgspec.json.decode((own / "metrics/cpu.json").read_bytes(), type=Metrics)
    before.all_gold.f -= 0.1
    before.all_gold.labels["PLACE"].f -= 0.2
    html = render(own, "cpu", baseline=Baseline("HEAD", before, 68))
    assert re.search(rf"F1 {before.all_gold.f:.3f} → 0\.\d+ since HEAD, after 68 reviewed cases\.", html)
    assert "+0.200" in Page(html).text("labels")
    assert "reviewed case" not in render(own, "cpu", baseline=Baseline("main", before))
    assert "since HEAD" not in render(own, "cpu")


def test_the_page_names_the_test_texts_whose_predictions_cannot_be_scored(tmp_path):
    docs, dev = make_docs(), make_docs()[:5]
    for doc in [*docs[:8], *dev]:
        doc.gold = [span for span in doc.gold if span[2] != "PERSON"]
        doc.uncovered = {"PERSON": "partial" if doc.key < f"{4:032x}" else "none"}
    write_results(tmp_path, docs, dev=dev)
    unscored = sum(span[2] == "PERSON" for doc in docs[:8] for span in doc.predicted)
    texts = sum(any(span[2] == "PERSON" for span in doc.predicted) for doc in docs[:8])
    said = f"{unscored} predictions in {texts} test texts can't be scored: these aren't fully annotated for PERSON"
    assert said in Page(render(tmp_path, "cpu")).text("trust").replace("’", "'")
    tables = Tables.of(tmp_path / "training/cpu")._replace(split="test")
    assert find_unanswered(tables, tmp_path / "corpus").texts == {"PERSON": 8}


@pytest.mark.parametrize("cases", [29, 30])
def test_the_page_estimates_the_precision_of_findings_from_a_decided_sample(own, cases):
    """Gold was wrong in 29 of 30 drawn; by Wilson, in 83 % of all 31 at least, and of 640 spans."""
    path = own / "metrics" / "merge.json"
    ledger = json.loads(path.read_text(encoding="utf8"))
    gold = {"train": {"PERSON": 500}, "dev": {"PERSON": 140}, "test": {"PERSON": 99}}
    path.write_text(json.dumps(ledger | {"gold": gold}))
    findings = own / "training/check/findings.jsonl"
    head, first, *_ = findings.read_text().splitlines()
    findings.write_text(f"{head}\n{first}\n" if cases == 30 else f"{head}\n")
    about = {"dataset": "PERSON", "label": "PERSON", "answer": "0" * 12, "removed": [0, 3]}
    drawn = draw(f"{1:024x}", "PLACE", (9, 14))
    before = (n for n in range(10**6) if draw(f"{n:024x}", "PERSON", (0, 3)) < drawn)
    rows = [{**about, "text": f"{n:024x}", "verdict": "gold is wrong"} for n in islice(before, cases)]
    rows[0]["verdict"] = "policy"
    write_jsonl(own / "assets/decisions/decisions.jsonl", rows)
    page = Page(render(own, "cpu"))
    fix, bar = page.text("fix"), page.text("gold")
    if cases < 30:
        assert "estimated" not in fix
        assert "estimated" not in bar
    else:
        assert "29 of 30 random suspects were annotation errors, so an estimated 26 to 31 of all 31 are." in fix
        assert "Not counted: 1 open question about the guidelines." in fix
        assert "The estimated annotation errors are 4% to 5% of the gold in train and dev." in bar


def test_a_pipeline_without_a_mistake_has_a_report(tmp_path):
    docs = [msgspec.structs.replace(doc, predicted=doc.gold) for doc in make_docs()]
    write_results(tmp_path, docs)
    page = Page(render(tmp_path, "cpu"))
    assert page.text() == "5 of 6 labels are ready; 1 with too few test spans. No errors on test."
    assert json.loads(page.scripts[0])["mistakes"] == []


@pytest.mark.parametrize("scheme", [0, 1])
def test_causes_are_told_apart_in_grey(scheme):
    """By CIE L* (0 to 100), where a step of 9 is plain to see."""
    css = (ROOT / "labelwise/report/templates/report.css").read_text(encoding="utf8")
    palette = dict(re.findall(r"--(\w+): #(\w{6});", re.findall(r"(?s):root \{(.*?)\}", css)[scheme]))
    lightness = []
    for cause in ("found", *KINDS):
        channels = [int(palette[cause][place : place + 2], 16) / 255 for place in (0, 2, 4)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        lightness.append(116 * (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]) ** (1 / 3) - 16)
    assert min(above - below for below, above in pairwise(sorted(lightness))) >= 9


def test_the_command_writes_the_page_and_says_what_to_do_first(results, tmp_path):
    root = Path(shutil.copytree(results, tmp_path / "new"))
    out = root / "report/cpu.html"
    printed = call(report_cli, "cpu", "--root", root)
    assert out.read_text(encoding="utf8") == render(results, "cpu")
    *_, first, where = printed.splitlines()
    small = "before you annotate more, train a small transformer, which knows more words: weasel run small"
    assert first == f"Next: {small}"
    (root / "metrics/small.json").touch()
    *_, first, where = call(report_cli, "cpu", "--root", root).splitlines()
    words = f"annotate more texts in full, mainly for labels {HOSTILE}, PLACE, COMPANY"
    assert re.fullmatch(
        rf"Next: {re.escape(words)} \(100 texts; F1 of all spans at most \+0\.\d+\); "
        "first put them into assets/raw: weasel run predict",
        first,
    )
    assert where == out.resolve().as_uri()
    assert "F1 0." in printed
    os.utime(out, (1, 1))
    call(report_cli, "cpu", "--root", root)
    assert out.stat().st_mtime == 1, "its time tells when it has changed"
    (root / "project.yml").write_text("report: {target_f1: 0.1}\n")
    call(report_cli, "cpu", "--root", root)
    assert out.stat().st_mtime > 1


EARLIER = "Next: raise patience or max_epochs in configs/{0}.cfg, which ended training at step 1,300 of 9,000: {1}"


@pytest.mark.parametrize("pipeline", ["cpu", "gpu"])
def test_an_undertrained_pipeline_is_trained_longer_before_anything_else(pipeline, tmp_path):
    write_results(tmp_path, make_docs(), pipeline, in_train=(0, 0))
    curve = "step\tscore\tents_f\n325\t0.5\t0.6\n650\t0.5\t0.7\n1300\t0.5\t0.75\n"
    (tmp_path / "plots" / f"{pipeline}.tsv").write_text(curve, encoding="utf8")
    page = Page(render(tmp_path, pipeline))
    why = "Training stopped too early: F1 on dev still rises; twice the steps should add about 2.5 points."
    assert page.text() == f"0 of 6 labels are ready; 5 not ready, 1 with too few test spans. {why}"
    printed = call(report_cli, pipeline, "--root", tmp_path)
    command = f"weasel run {'all' if pipeline == 'cpu' else 'gpu'}"
    assert printed.splitlines()[-2] == f"Next: set steps: 2600 in project.yml: {command}"
    (tmp_path / "configs").mkdir()
    for allowed, also in (
        ("[training]\nmax_steps = 2600\n", ""),
        ("[training]\nmax_steps = 2599\n", f", and max_steps = 2600 in configs/{pipeline}.cfg"),
        ("[training]\nmax_steps = ${training.patience}\n", ""),
        ("max_steps", ""),
    ):
        (tmp_path / f"configs/{pipeline}.cfg").write_text(allowed)
        printed = call(report_cli, pipeline, "--root", tmp_path)
        assert printed.splitlines()[-2] == f"Next: set steps: 2600 in project.yml{also}: {command}"
    trained = tmp_path / f"training/{pipeline}/model-best"
    trained.mkdir(parents=True)
    for steps, advised in (("1300", printed.splitlines()[-2]), ("9000", EARLIER.format(pipeline, command))):
        (trained / "config.cfg").write_text(f"[training]\nmax_steps = {steps}\n")
        assert call(report_cli, pipeline, "--root", tmp_path).splitlines()[-2] == advised
    assert page.text("labels").count("train longer") == 5
    assert "More training texts aren’t the best next step for any label." in page.text("label")


def test_a_label_of_which_most_predictions_cannot_be_judged_shows_no_score(tmp_path):
    docs = make_docs()
    for number, doc in enumerate(docs):
        doc.predicted = [span for span in doc.gold if span[2] == "DRUG"]
        if number % 3:
            doc.gold = [span for span in doc.gold if span[2] != "DRUG"]
            doc.uncovered = {"DRUG": "none"}
    write_results(tmp_path, docs)
    file = tmp_path / "metrics/cpu.json"
    metrics = msgspec.json.decode(file.read_bytes(), type=Metrics)
    metrics.all_spans = metrics.all_gold
    file.write_bytes(msgspec.json.encode(metrics))
    metrics.all_gold.labels["DRUG"].f = 0.75
    html = render(tmp_path, "cpu", baseline=Baseline("main", metrics))
    [row] = [match for match in re.findall(r"(?s)<tr>.*?</tr>", html) if ">DRUG</a>" in match]
    assert "not scored (40 predictions)" in row
    assert "1.00" not in row
    assert "+0.250" not in row
    assert "annotate more test texts" in row


def test_of_many_mistakes_each_label_keeps_its_first(tmp_path, monkeypatch):
    monkeypatch.setattr("labelwise.report.page.MAX_MISTAKES", 5)
    write_results(tmp_path, make_docs())
    mistakes = json.loads(Page(render(tmp_path, "cpu")).scripts[0])["mistakes"]
    assert len(mistakes) == 5
    assert {mistake[side] for mistake in mistakes for side in ("gold_label", "predicted_label")} >= {*LABELS}


def test_many_changes_are_counted_and_sampled_by_label(own, monkeypatch):
    monkeypatch.setattr("labelwise.report.page.MAX_CHANGES", 5)
    kinds = [(label, change) for label in ("DRUG", "PLACE") for change in ("new", "fixed")]
    changed = [
        ChangedSpan(change, "missed", label, f"word {n}", "a", "", "") for label, change in kinds for n in range(300)
    ]
    metrics = msgspec.json.decode((own / "metrics/cpu.json").read_bytes(), type=Metrics)
    page = Page(render(own, "cpu", baseline=Baseline("main", metrics, 0, changed)))
    listed = [(item["label"], item["change"], item["words"]) for item in json.loads(page.scripts[0])["changed"]]
    assert listed == [("DRUG", "new", "word 0"), ("DRUG", "new", "word 1"), *((*one, "word 0") for one in kinds[1:])]
    message = "1,200 errors that only one of main and this evaluation makes (5 are listed): search"
    assert message in page.text("mistakes")
    page = Page(render(own, "cpu", baseline=Baseline("main", metrics, 0, changed[:5])))
    assert "5 errors that only one of main and this evaluation makes: search" in page.text("mistakes")


def test_labels_near_the_goal_are_borderline_and_nothing_is_packaged_where_none_is_ready(own):
    def page(target_f1: float) -> Page:
        return Page(render(own, "cpu", target_f1=target_f1))

    metrics = msgspec.json.decode((own / "metrics/cpu.json").read_bytes(), type=Metrics)
    low = {label: metrics.all_gold.labels[label].f_low for label in LABELS}
    best = max(LABELS, key=low.__getitem__)
    above = page(low[best] + 0.01)
    assert "python -m scripts.package cpu" not in above.text("labels")
    assert f"{best} borderline" in above.text("labels")
    findings = own / "training/check/findings.jsonl"
    head, case, *_ = map(json.loads, findings.read_text().splitlines())
    cases = [(case | {"score": n, "group": name, "proposed": [9, 14, name]}) for n, name in ((9, "OTHER"), (1, best))]
    write_jsonl(findings, [head, *cases])
    close = page(low[best] - 0.01)
    assert f"{best} borderline" in close.text("labels")
    assert [item["group"] for item in json.loads(close.scripts[0])["cases"]] == [best, "OTHER"], "it is to be improved"
    assert "python -m scripts.package cpu" in page(0.1).text("labels")


def heads(page: Page) -> list[str]:
    return [
        head.strip() for head in re.findall(r"(?s)<th scope=\"col\"[^>]*>(.*?)</th>", page.html.split("</thead>")[0])
    ]


def test_next_step_precedes_the_figures_and_columns_of_equal_cells_are_left_out(own):
    before = msgspec.json.decode((own / "metrics/cpu.json").read_bytes(), type=Metrics)
    first = ["Label", "Verdict", "F1, 95% interval by text, target 0.8", "Errors on test", "Next"]
    columns = ["Annotators agree", "Train spans", "P", "R"]
    assert heads(Page(render(own, "cpu", baseline=Baseline("main", before)))) == [*first, *columns]
    before.all_gold.labels["PLACE"].f -= 0.2
    metrics = msgspec.json.decode((own / "metrics/cpu.json").read_bytes(), type=Metrics)
    metrics.all_spans = metrics.all_gold
    (own / "metrics/cpu.json").write_bytes(msgspec.json.encode(metrics))
    shown = heads(Page(render(own, "cpu", baseline=Baseline("main", before))))
    assert shown == [*first, "Since main", "F1 entities", *columns]


@pytest.mark.parametrize("units", [3, 30])
def test_intervals_are_by_document_and_below_five_their_number_is_shown(tmp_path, units):
    docs = [msgspec.structs.replace(doc, unit=f"{number % units}") for number, doc in enumerate(make_docs())]
    write_results(tmp_path, docs)
    page = Page(render(tmp_path, "cpu"))
    assert "F1, 95% interval by document, target 0.8" in heads(page)
    assert ("3 documents" in page.text("labels")) == (units == 3)
    assert f"on 60 test texts of {units} documents with" in page.html
    assert ("(3 documents: no interval)" in page.html) == (units == 3)


def test_groups_of_texts_have_a_table(own):
    row = {"p": 0.5, "r": 0.5, "f": 0.5, "support": 1234, "f_low": 0.4, "f_high": 0.6, "units": 30, "texts": 56}
    few = {"p": 1.0, "r": 0.0, "f": 0.0, "support": 7, "units": 4, "texts": 4}
    content = {"dataset": {"<b>web</b>": row, "mail": few}}
    (own / "training/cpu/groups.json").write_text(json.dumps(content))
    html = Page(render(own, "cpu")).html
    [table] = re.findall(r"(?s)Table by dataset.*?</section>", html)
    text = " ".join(re.sub("<[^>]*>", " ", table).split())
    assert "&lt;b&gt;web&lt;/b&gt; 56 1,234 0.50 0.40–0.60 mail 4 7 0.00 4 texts" in text
    assert "rows don’t add up" in text


def test_one_row_has_all_figures(tmp_path):
    write_results(tmp_path, make_docs(), labels=["DRUG"])
    assert heads(Page(render(tmp_path, "cpu")))[-3:] == ["Texts", "P", "R"]


def test_curves_of_learning_are_pictures(own):
    change = {"difference": 0.05, "low": 0.01, "high": 0.09, "significant": True}
    f = {"f": {"half": 0.7, "a quarter": 0.6, "all": 0.75}, "changes": {"a quarter": change, "all": change}}
    texts = {"half": 100, "a quarter": 50, "all": 200}
    curve = {"pipeline_digest": "89abcdef01234567", "texts": texts, "micro": f, "labels": {}}
    (own / "metrics/train_curve.json").write_text(json.dumps(curve))
    (own / "plots/cpu.tsv").write_text("step\tents_f\n100\t0.5\n400\t0.85\n200\t0.7\n")
    page = Page(render(own, "cpu"))
    titles = ["F1 on dev by training step: 0.850 at best, at step 400"]
    titles += ["F1 on dev by texts in train: 0.600 with 50, 0.700 with 100, 0.750 with 200"]
    assert [attrs["aria-label"] for tag, attrs in page.tags if tag == "svg"][-2:] == titles
    lines = [attrs["points"].split() for tag, attrs in page.tags if tag == "polyline"]
    # 300 wide; 110 high, from 0.9 to 0.5, and from 0.8 to 0.6.
    assert lines == [["75.0,110.0", "300.0,13.8", "150.0,55.0"], ["75.0,110.0", "150.0,55.0", "300.0,27.5"]]
    (own / "plots/cpu.tsv").unlink()
    (own / "metrics/train_curve.json").unlink()
    assert "polyline" not in {tag for tag, _ in Page(render(own, "cpu")).tags}


def test_texts_without_a_document_are_named_by_file_and_line_also_those_that_lack_an_answer(merging, tmp_path):
    """Of 40 test texts, one was ignored, and 5 aren't annotated for B; another one, for C alone."""
    texts = [f"a big cat sat on mat {number}" for number in range(40)]
    rows = [task(text, (6, 9), answer="ignore" if number == 7 else "accept") for number, text in enumerate(texts)]
    rows[8]["spans"] = []
    both = [task(text, (17, 20), label="B") for number, text in enumerate(texts) if not 10 <= number < 15]
    merging.add("a", ["A"], rows, split="test")
    merging.add("b", ["B"], [*both, task("a mat", (2, 5), label="B")], split="test")
    merging.add("apart", ["C"], [task("the cat", (0, 3), label="C")], split="test")
    merging.add("train", ["A", "B"], [task("one cat", (4, 7)), task("one mat", (4, 7), label="B")], split="train")
    merging.run()
    nlp = make_nlp(*read_tokenizer(tmp_path / "corpus/tokenizer.json"))
    model = save_ruler(tmp_path / "model", ("A", "cat"), ("B", "mat"), nlp=nlp)
    evaluate_pipeline(model, tmp_path / "corpus/test", tmp_path / "metrics/cpu.json", tables=tmp_path / "training/cpu")
    (own,) = [step for step in write_report(tmp_path, "cpu", tmp_path / "report.html").warnings if "can't" in step.what]
    assert own.what == "7 predictions in 7 test texts can't be scored: these aren't fully annotated for B (5), A (2)."
    named = re.match(r"Annotate in full for B: (.*?) and 2 more; A: (.*?)\. If labels never occur in", own.remedy)
    assert {int(match) for match in re.findall(r"a\.jsonl:(\d+)", named[1])} <= {11, 12, 13, 14, 15}
    assert {*named[2].split(", ")} == {"a.jsonl:8", "apart.jsonl:1"}
    # Texts of a have B, as b says.
    assert own.remedy.endswith(" declare them `absent` in its entry in datasets.yml: apart: A.")
    page = Page((tmp_path / "report.html").read_text(encoding="utf8"))
    mistakes = json.loads(page.scripts[0])["mistakes"]
    assert {mistake["doc"] for mistake in mistakes if mistake["predicted_label"] == "A"} == {"a.jsonl:9"}
    assert {mistake["why"] for mistake in mistakes} == {""}, "rules have no head to ask"
