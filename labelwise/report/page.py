"""Make the report of a pipeline: one HTML page that needs nothing else, neither network nor files.

`results` reads what merge, training and evaluation have written, `deck` the findings of a check; `advice` says what to
think of it, and the template draws it. It escapes all that comes from corpora. What isn't there is None, and the page
says which command makes it. The same results make the same bytes, in any clone, on any day.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from labelwise import __version__
from labelwise.common.files import staged
from labelwise.corpus.ledger import Ledger, split_gold
from labelwise.corpus.manifest import is_corpus
from labelwise.corpus.places import read_declared
from labelwise.evaluate.ranking import SHIP_AT
from labelwise.evaluate.results import load_results
from labelwise.evaluate.scores import Metrics
from labelwise.evaluate.tables import CAUSES
from labelwise.report.advice import EXPORT, NAMES, advise, doubts, tell_f
from labelwise.report.deck import read_deck
from labelwise.report.environment import make_environment
from labelwise.report.mistakes import find_confused, find_examples


class Base(NamedTuple):
    """An earlier evaluation, to tell the difference to.

    name (str): of the git revision.
    decided (int): decisions that there are now beyond those of then.
    """

    name: str
    metrics: Metrics
    decided: int = 0


def write_report(
    root: Path | str, pipeline: str, out: Path | str, *, base: Base | None = None, ship_at: float = SHIP_AT
) -> None:
    """Write the report of a pipeline as an HTML page.

    root (Path | str): the folder of the project.
    pipeline (str): "cpu" or "gpu".
    base (Base | None): an earlier evaluation.
    ship_at (float): what the lower end of a label's interval of F1 must reach for it to be used.
    RAISES (InputError): there is nothing to report, a file isn't what it should be, or another process is writing it.
    """
    with staged(Path(out)) as path:
        page = render_report(Path(root), pipeline, base=base, ship_at=ship_at)
        path.write_text(page, encoding="utf8", newline="\n")


def render_report(root: Path, pipeline: str, *, base: Base | None = None, ship_at: float = SHIP_AT) -> str:
    """Render the page; see `write_report`."""
    results, deck = load_results(root, pipeline), read_deck(root)
    metrics, merge, corpus = results.metrics, results.merge, root / "corpus"
    advice = metrics and advise(metrics, results.curve, pipeline, ship_at, deck.missing())
    return (
        make_environment()
        .get_template("report.html.jinja")
        .render(
            version=__version__,
            pipeline=pipeline,
            merge=merge,
            metrics=metrics,
            advice=advice,
            f=metrics and tell_f(metrics),
            ship_at=ship_at,
            bar=metrics and divide_gold(metrics),
            names=NAMES,
            base=base,
            changes=metrics and base and compare_labels(metrics, base.metrics),
            deck=deck,
            cards={
                "digest": merge.digest if merge else "",
                "urls": read_declared(corpus).document_urls if is_corpus(corpus) else {},
                "cases": deck.cases,
                "examples": find_examples(results.tables) if results.tables else {},
            },
            confused=results.tables and find_confused(results.tables),
            doubts=metrics and list(doubts(merge, metrics)),
            outcomes=merge and tabulate_outcomes(merge),
            export=EXPORT,
        )
    )


def divide_gold(metrics: Metrics) -> list[tuple[str, int, float]]:
    """Divide all test gold by cause: how many spans, and which share."""
    total: Counter[str] = Counter()
    for one in metrics.errors.values():
        total.update(one.causes)
    return [(cause, total[cause], total[cause] / total.total()) for cause in CAUSES if total[cause]]


def compare_labels(metrics: Metrics, base: Metrics) -> Mapping[str, float]:
    """Compute the difference of F1 of each label that both have it of."""
    before = {label: scores.shown().f for label, scores in base.all_gold.labels.items()}
    now = {label: scores.shown().f for label, scores in metrics.all_gold.labels.items()}
    return {label: f - old for label, f in now.items() if f is not None and (old := before.get(label)) is not None}


def tabulate_outcomes(merge: Ledger) -> list[tuple[str, list[tuple[str, int, float]]]]:
    """List where rows, spans and gold went: each outcome with its number and share; what is empty is left out."""
    gold: Counter[str] = Counter()
    for counts in merge.labels.values():
        gold.update(split_gold(counts))
    panels: tuple[tuple[str, Mapping[str, int]], ...] = (
        ("Rows read", merge.rows),
        ("Spans read", merge.spans),
        ("Accepted spans", gold),
    )
    return [
        (title, [(name, n, n / sum(counts.values())) for name, n in Counter(counts).most_common() if n])
        for title, counts in panels
        if any(counts.values())
    ]
