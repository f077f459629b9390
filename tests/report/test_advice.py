"""What the report says of trust, and of what to fix next."""

import json

import msgspec
import pytest

from labelwise.common.files import remove
from labelwise.corpus.merge_counts import MergeCounts
from labelwise.evaluate.ranking import rank_labels
from labelwise.evaluate.results import load_results
from labelwise.evaluate.scores import Metrics
from labelwise.report.advice import doubts, summarize
from labelwise.report.page import render_report, write_report
from labelwise.report.sections import tabulate_scores
from tests.report.report_inputs import make_docs, write_json, write_results
from tests.report.test_page import Page


def make_merge(**fields) -> MergeCounts:
    """A merge that nothing is to be said against."""
    labels = {"A": {"complete": 10, "gold": 1000, "entity": 1000}}
    return MergeCounts(**{"rows": {}, "spans": {}, "labels": labels, **fields})


def make_metrics(**fields) -> Metrics:
    scores = {"p": 0.5, "r": 0.5, "f": 0.5, "support": 20}
    gold = {**scores, "macro": scores, "labels": {"A": scores}}
    unseen = {"texts": 0, "f_without": 0.5, "whole": True}
    return msgspec.convert({"texts": 20, "all_gold": gold, "flat_gold": gold, "seen": unseen, **fields}, Metrics)


def without_gold(*labels: str) -> Metrics:
    metrics = make_metrics()
    for label in labels:
        metrics.all_gold.labels[label] = msgspec.structs.replace(metrics.all_gold.labels["A"], support=0)
    return metrics


def test_nothing_to_say_where_all_is_well():
    assert list(doubts(make_merge(), make_metrics())) == []
    assert list(doubts(None, make_metrics())) == []


@pytest.mark.parametrize(
    ("merge", "metrics", "what", "remedy"),
    [
        ({}, make_metrics(texts=19), "only 19 texts", "test_ratio in project.yml"),
        ({}, without_gold("B"), "Label B without gold in test: nothing is known", "Annotate more"),
        ({}, without_gold("B", "C"), "Labels B, C without gold in test: nothing is known", "Annotate more"),
        ({}, without_gold(*"BCDEFGHI"), "Labels B, C, D, E, F, G and 2 more without gold", "test_ratio"),
        ({}, make_metrics(seen=None), "Unknown whether the pipeline was trained on some of the 20", "train it again."),
        (
            {},
            make_metrics(seen={"texts": 5, "f_without": 0.4, "whole": True}),
            "The pipeline was trained on 5 of the 20 texts (in its train or dev): F is 0.500, without them 0.400.",
            "Evaluate it on test of the corpus that it was trained on",
        ),
        ({}, make_metrics(unscored=1234), "1,234 predicted spans can't be judged", "absent in datasets.yml"),
        (
            {"near_duplicates": {"train, test": 3, "dev, test": 1, "train, dev": 7}},
            None,
            "in test and another: 4.",
            "group",
        ),
        ({"undeclared": {"wlp: pH": 25}}, None, "undeclared labels aren't used: wlp: pH (25)", "datasets.yml"),
        ({"labels": {"A": {"none": 7}}}, None, "Label A without a text that is complete for it", "ner.manual"),
        ({"problems": 1}, None, "1 row or span can't be used", "problems.jsonl"),
        (
            {"inferred": {"b": 2, "a": 1}},
            None,
            "The labels are inferred of a, b: labels nobody used are missing",
            "in place of auto",
        ),
        (
            {"compared": False},
            None,
            "Nobody has looked for texts of test that are nearly equal",
            "near_duplicates: report",
        ),
        (
            {"labels": {"A": {"complete": 1, "gold": 100, "entity": 93, "learnt as well": 2, "no token boundary": 5}}},
            None,
            '100 accepted spans: 93 flat entities; 2 learnt as well, in doc.spans["labels"] (recognizer: per-label); '
            "5 lost.",
            "lost_spans.jsonl",
        ),
    ],
)
def test_each_doubt_has_its_remedy(merge, metrics, what, remedy):
    (doubt,) = doubts(make_merge(**merge), metrics or make_metrics())
    assert what in doubt.what
    assert remedy in doubt.remedy


def test_what_cannot_be_judged_is_named_by_label_the_largest_first():
    errors = {"B": {"unjudged": 3, "right": 4}, "A": {"unjudged": 1, "spurious": 1, "boundaries": 1}}
    metrics = msgspec.convert({**msgspec.to_builtins(make_metrics(unscored=5)), "errors": errors}, Metrics)
    (doubt,) = doubts(make_merge(), metrics)
    assert "5 of 11 predicted spans can't be judged" in doubt.what
    assert doubt.what.endswith("(B 3, A 1).")


def test_what_is_not_known_is_not_said_to_be_well(tmp_path):
    """Without the merge's counts, the page says how to have them, and nothing of near-duplicates."""
    write_results(tmp_path, make_docs())
    for file, change in (("merge", {"spans": {}, "labels": {"PLACE": {"complete": 9}}}), ("cpu", {"unscored": 0})):
        path = tmp_path / f"metrics/{file}.json"
        content = {**json.loads(path.read_text()), **change}
        content["all_gold"]["labels"].pop("NEVER_SEEN") if file == "cpu" else None
        path.write_text(json.dumps(content))
    page = " ".join(Page(render_report(tmp_path, "cpu")).sections["trust"].split())
    assert "none is nearly equal" in page
    (tmp_path / "metrics/merge.json").unlink()
    page = " ".join(Page(render_report(tmp_path, "cpu")).sections["trust"].split())
    assert "with gold for each label." in page
    assert "nearly equal" not in page
    assert "weasel run merge" in page


def test_findings_are_linked_where_they_are_and_those_of_another_corpus_are_called_so(tmp_path, demo_corpus):
    write_results(tmp_path, make_docs())
    remove(tmp_path / "corpus")
    (tmp_path / "corpus").symlink_to(demo_corpus)
    write_report(tmp_path, "cpu", tmp_path / "report/cpu.html")
    assert "check.html" not in (tmp_path / "report/cpu.html").read_text(encoding="utf8")
    digest = json.loads((demo_corpus / "manifest.json").read_text())["splits"]["train"]["digest"]
    for found, warned in ((digest, False), ("0" * 64, True)):
        write_json(tmp_path / "training/check/check.json", {"digest": found})
        (tmp_path / "report/check.html").touch()
        write_report(tmp_path, "cpu", tmp_path / "report/cpu.html")
        page = (tmp_path / "report/cpu.html").read_text(encoding="utf8")
        assert '<a href="check.html">' in page
        assert ("found it in another corpus" in page) == warned
        write_report(tmp_path, "cpu", tmp_path / "elsewhere/cpu.html")
        assert "check.html" not in (tmp_path / "elsewhere/cpu.html").read_text(encoding="utf8")


def test_few_lost_spans_are_no_doubt():
    labels = {"A": {"complete": 1, "gold": 100, "entity": 99, "nested": 1}}
    assert list(doubts(make_merge(labels=labels), make_metrics())) == []


def test_spans_that_are_learnt_as_well_are_a_doubt_only_where_nothing_learns_them():
    """spaCy's ner learns entities alone, and has no scores of other spans."""
    merge = make_merge(labels={"A": {"complete": 1, "gold": 100, "entity": 90, "nested": 10, "learnt as well": 10}})
    (doubt,) = doubts(merge, make_metrics())
    assert "90 flat entities; 10 learnt as well" in doubt.what
    metrics = make_metrics()
    metrics.all_spans = metrics.all_gold
    assert list(doubts(merge, metrics)) == []


def test_the_page_says_it(tmp_path):
    write_results(tmp_path, make_docs())
    page = Page(render_report(tmp_path, "cpu"))
    assert "of words that train marks variously" in page.text("next")
    assert "unmarked 1,200, PLACE 40, COMPANY 9" in page.text("next")
    assert "NEVER_SEEN without gold in test" in page.text("trust")
    told = '1,680 flat entities; 50 learnt as well, in doc.spans["labels"] (recognizer: per-label); 7 lost.'
    assert told in page.text("trust")
    assert told in page.text("annotations")


def test_a_report_in_a_few_lines(tmp_path):
    write_results(tmp_path, make_docs())
    results = load_results(tmp_path, "cpu")
    digest = summarize(results)
    scores = results.metrics.all_gold
    assert digest.f == f"{scores.f:.3f} ({scores.f_low:.3f} to {scores.f_high:.3f})"
    ranked = rank_labels(results.metrics)
    assert digest.costliest == [f"{row.label} {row.points:.1f}" for row in ranked[:3]]
    assert digest.tasks[0].label == ranked[0].label
    assert len(digest.doubts) == 3
    scores.f_low = scores.f_high = None
    results.metrics.all_spans = msgspec.structs.replace(scores, f=0.5)
    assert summarize(results).f == f"{scores.f:.3f}, of all spans 0.500"
    assert summarize(results._replace(metrics=None)) is None


def test_the_most_errors_come_first_and_are_those_of_the_predictions(tmp_path):
    docs = make_docs()
    write_results(tmp_path, docs)
    results = load_results(tmp_path, "cpu")
    rows = tabulate_scores(results.metrics, results.details)
    errors = {}
    for label in {span[2] for doc in docs for span in doc.gold}:
        gold = {(doc.key, *span) for doc in docs for span in doc.gold if span[2] == label}
        predicted = {(doc.key, *span) for doc in docs for span in doc.predicted if span[2] == label}
        errors[label] = (len(gold & predicted), len(predicted - gold), len(gold - predicted))
    assert {row["label"]: (row["tp"], row["fp"], row["fn"]) for row in rows if row["scores"].support} == errors
    totals = [row["fp"] + row["fn"] for row in rows]
    assert totals == sorted(totals, reverse=True)


def test_columns_without_any_value_are_left_out(tmp_path):
    write_results(tmp_path, make_docs())
    assert "Agreement" in Page(render_report(tmp_path, "cpu")).text("scores")
    path = tmp_path / "metrics" / "cpu.json"
    metrics = json.loads(path.read_text())
    metrics["agreement"] = {}
    path.write_text(json.dumps(metrics))
    text = Page(render_report(tmp_path, "cpu")).text("scores")
    assert "Agreement" not in text
    assert "F type" in text
