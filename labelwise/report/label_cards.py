"""What is known of each label, for a card of its own: what the page's script shows of one label, on one screen."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from labelwise.evaluate.results import Results
from labelwise.report.concordance import Concordance, json_in_page

LARGEST = 8_000_000  # bytes of a page
RESERVED = 1000  # bytes of what is beside forms and cards


def make_cards(results: Results, concordance: Concordance | None, advice: Mapping[str, str]) -> dict[str, Any]:
    """Collect what the cards show; the forms aren't in it.

    advice (Mapping): what to do next, by label.
    """
    merge = results.merge
    boundaries = results.details.wrong_boundaries if results.details else {}
    labels = results.metrics.all_gold.labels if results.metrics else {}
    complete, partial = (merge.complete, merge.partial) if merge else ({}, {})
    coverage: dict[str, list[tuple[str, int, int]]] = {}
    for dataset in sorted(complete.keys() | partial.keys()):
        whole, single = complete.get(dataset, {}), partial.get(dataset, {})
        for label in whole.keys() | single.keys():
            coverage.setdefault(label, []).append((dataset, whole.get(label, 0), single.get(label, 0)))
    return {
        "digest": merge.digest if merge else "",
        "urls": concordance.declared.document_urls if concordance else {},
        "labels": {
            label: {
                "scores": scores.shown(),
                "boundaries": [(one.gold, one.predicted, one.count) for one in boundaries.get(label, ())],
                "coverage": coverage.get(label, ()),
                "next": advice.get(label, ""),
            }
            for label, scores in labels.items()
        },
    }


def embed(cards: Mapping[str, Any], concordance: Concordance | None, size: int) -> Markup:
    """Write cards, and as many forms as fit, as JSON that can stand in a page.

    size (int): bytes that it may have.
    """
    content = json_in_page(cards)
    fitting = concordance and concordance.fitting(size - len(content) - RESERVED)
    forms = {"forms": fitting.forms, "others": fitting.others} if fitting else {"forms": None, "others": 0}
    return Markup(json_in_page({**cards, **forms}).decode())  # noqa: S704  has no < in it
