"""Make the report of a pipeline: one HTML page that needs nothing else, neither network nor files.

1. `results` reads what merge, training and evaluation have written; `mistake_examples` passes over the predictions.
2. `sections` makes tables and charts from that. What isn't there is None, and the page says which command makes it.
3. The template draws them. It escapes all that comes from corpora.

The same results make the same bytes, in any clone, at any commit, on any day.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from labelwise import __version__
from labelwise.common.errors import InputError
from labelwise.common.files import staged
from labelwise.compare.revisions import Revision
from labelwise.corpus.manifest import is_corpus, pinned, read_manifest, read_split
from labelwise.corpus.merge_counts import tell_gold
from labelwise.corpus.places import read_declared_labels
from labelwise.corpus.tokenizer import read_tokenizer
from labelwise.evaluate.mistakes import KINDS, NOTHING
from labelwise.evaluate.predictions import new_digest, read_predictions
from labelwise.evaluate.ranking import FEW, SHIP_AT
from labelwise.evaluate.results import Details, Metrics, Results, load_results
from labelwise.evaluate.scores import MARKINGS
from labelwise.report.advice import doubts, missed_forms
from labelwise.report.check_page import CHECK_PAGE, read_checked_digest
from labelwise.report.concordance import Concordance, find_various
from labelwise.report.environment import make_environment
from labelwise.report.identity import changed_settings
from labelwise.report.label_cards import LARGEST, embed, make_cards
from labelwise.report.lost import group_lost
from labelwise.report.mistake_examples import MistakeExamples, Pattern
from labelwise.report.sections import (
    COVERAGE,
    MOST_DATASETS,
    change_of,
    draw_calibration,
    draw_curves,
    most_used,
    tabulate_confusion,
    tabulate_coverage,
    tabulate_outcomes,
    tabulate_scores,
)
from labelwise.report.tasks import Task, first_tasks, list_labels, open_lists, verdicts

LOST_SPANS = "lost_spans.jsonl"
FREQUENT = 8  # mistakes of a kind that are shown
EXAMPLES_SIZE = 3_000_000  # bytes of examples
CARDS = '<script type="application/json" id="cards">'


def write_report(
    root: Path | str,
    pipeline: str,
    out: Path | str,
    *,
    base: Revision | None = None,
    ship_at: float = SHIP_AT,
) -> None:
    """Write the report of a pipeline.

    root (Path | str): the folder of the project.
    pipeline (str): "cpu" or "gpu".
    base (Revision | None): the scores to tell the difference to.
    ship_at (float): what the lower end of the interval of F must reach for a label to be used.
    RAISES (InputError): there are no results, a file of them isn't what it should be, or another process is writing
        the report.
    """
    root, out = Path(root), Path(out)
    with staged(out) as path:
        page = render_report(root, pipeline, base=base, ship_at=ship_at, beside=out.parent)
        path.write_text(page, encoding="utf8", newline="\n")


def render_report(
    root: Path,
    pipeline: str,
    *,
    base: Revision | None = None,
    ship_at: float = SHIP_AT,
    beside: Path | None = None,
) -> str:
    """Make the page; see `write_report`.

    beside (Path | None): the folder that it is for, which the page of a check may be in; None if it isn't known.
    """
    results = load_results(root, pipeline)
    merge, metrics, details = results.merge, results.metrics, results.details
    rows = metrics and list_labels(metrics, details, merge, pipeline)
    first = first_tasks(rows, metrics, details, results.curve, pipeline) if metrics and rows else ()
    template = make_environment().get_template("report.html.jinja")
    browser = results.predictions and metrics and collect_examples(results.predictions, metrics, details)
    concordance = find_concordance(root / "corpus", results)
    checked_elsewhere = not is_of(read_checked_digest(root), root / "corpus")
    page = template.render(
        version=__version__,
        pipeline=pipeline,
        metrics=metrics,
        details=details,
        settings=changed_settings(root / "project.yml"),
        seconds=max(results.resources["seconds"], default=0.0) if results.resources else 0.0,
        base=base,
        change=metrics and base and change_of(metrics, base.metrics),
        told=merge and tell_gold(merge.labels),
        lost=group_lost(root / "corpus" / LOST_SPANS, root / "corpus" / "tokenizer.json"),
        doubts=metrics and list(doubts(merge, metrics)),
        rows=rows,
        tasks=rows and find_tasks(root, first, checked_here=not checked_elsewhere),
        verdicts=rows and verdicts(rows, ship_at),
        ship_at=ship_at,
        few=FEW,
        markings=MARKINGS,
        missed=details and missed_forms(details),
        outcomes=merge and tabulate_outcomes(merge),
        coverage=merge and tabulate_coverage(merge),
        datasets=merge and most_used(merge),
        more_datasets=merge is not None and len(merge.complete.keys() | merge.partial.keys()) > MOST_DATASETS,
        scores=metrics and tabulate_scores(metrics, details, merge, base and base.metrics),
        merge=merge,
        check=beside and (beside / CHECK_PAGE).is_file() and CHECK_PAGE,
        checked_elsewhere=checked_elsewhere,
        calibration=details and draw_calibration(details.reliability),
        curves=results.curve and draw_curves(results.curve),
        confusion=details and tabulate_confusion(details.confusion),
        browser=browser,
        coverage_states=COVERAGE,
        kinds=KINDS,
        most_frequent=FREQUENT,
        nothing=NOTHING,
    )
    cards = make_cards(
        results,
        concordance,
        {row.ranked.label: f"{row.task.do}: {row.task.why}" for row in rows or ()},
    )
    # The element stands before all that comes from corpora.
    before, element, after = page.partition(CARDS)
    words = embed(cards, concordance, LARGEST - len(page.encode("utf8")))
    return f"{before}{element}{words}{after}"


def find_concordance(corpus: Path, results: Results) -> Concordance | None:
    """Find the forms that are marked variously; None if the predictions aren't of this corpus, or there are none.

    RAISES (InputError): a file isn't what it should be.
    """
    if not (results.predictions and results.metrics and is_corpus(corpus)):
        return None
    with pinned(corpus):
        manifest = read_manifest(corpus)
        if manifest["splits"]["test"]["digest"] != results.metrics.texts_digest:
            return None
        return find_various(corpus, results.predictions, manifest["labels"])


def find_tasks(root: Path, tasks: Iterable[Task], *, checked_here: bool) -> list[Task]:
    """List tasks; work lists that are there are opened, if they are of this corpus (`checked_here`).

    RAISES (InputError): a file of the corpus isn't what it should be.
    """
    corpus = root / "corpus"
    if is_corpus(corpus) and checked_here:
        lang, _ = read_tokenizer(corpus / "tokenizer.json")
        tasks = open_lists(tasks, root, lang, read_declared_labels(corpus))
    return list(tasks)


def is_of(digest: str, corpus: Path) -> bool:
    """Tell whether a digest is that of the texts in train; true as well if that can't be known."""
    return not digest or not is_corpus(corpus) or digest == read_split(corpus / "train")["digest"]


def collect_examples(path: Path, metrics: Metrics, details: Details | None) -> dict[str, Any]:
    """Pass over the predictions once, for examples of mistakes as HTML and for the totals.

    RAISES (InputError): the scores weren't computed from these predictions.
    """
    frequent = [one for found in details.frequent.values() for one in found[:FREQUENT]] if details else []
    surfaces = [(one.gold, one.gold_label, one.predicted, one.predicted_label) for one in frequent]
    examples, digest = MistakeExamples(frequent=surfaces), new_digest()
    for doc in read_predictions(path, digest):
        examples.add(doc.only(metrics.all_gold.labels))
    if metrics.predictions_digest not in ("", digest.hexdigest()):
        raise InputError(f"{path}: not the predictions that the scores were computed from; run the evaluation again")
    labels = sorted({label for _, *pair in examples.patterns for label in pair if label})
    totals = totals_by_filter(examples.patterns, labels)
    chosen = examples.chosen()
    shown = examples.chosen(EXAMPLES_SIZE)
    return {
        "examples": shown,
        "left_out": len(chosen) - len(shown),
        "labels": labels,
        "most": examples.most,
        "totals": totals,
    }


def totals_by_filter(patterns: Mapping[Pattern, int], labels: Sequence[str]) -> dict[str, int]:
    """Count the mistakes for each choice: "KIND LABEL", by their numbers, or * for all, and "KIND GOLD→PREDICTED"."""
    totals = Counter({"* *": 0})
    for (kind, gold, predicted), n in patterns.items():
        numbers = {str(labels.index(label)) for label in (gold, predicted) if label}
        for one in (str(KINDS.index(kind)), "*"):
            for other in ("*", f"{gold or NOTHING}→{predicted or NOTHING}", *numbers):
                totals[f"{one} {other}"] += n
    return dict(sorted(totals.items()))
