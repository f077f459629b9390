"""The model card: what a pipeline is for, what it was trained on, and how good it is, for people and the hub.

The head, in YAML, is what the Hugging Face hub reads (https://huggingface.co/docs/hub/model-cards). Every number is one
of `metrics/`, or of the corpus's manifest.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from labelwise import __version__
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.manifest import Manifest
from labelwise.evaluate.ranking import SHIP_AT, Verdict, rank_labels
from labelwise.evaluate.scores import Metrics, Score, Scores, tell_seen
from labelwise.package.contents import Contents, is_folder
from labelwise.text import counted


class Card(NamedTuple):
    """A model card.

    head (str): what the hub reads, in YAML.
    body (str): what people read, in Markdown; `huggingface-hub push` puts a head of its own before it, from meta.json.
    """

    head: str
    body: str


def write_card(
    meta: Mapping[str, Any],
    metrics: Metrics,
    merge: Ledger,
    manifest: Manifest,
    contents: Contents,
    ship_at: float = SHIP_AT,
) -> Card:
    """Write the card of a pipeline.

    meta (Mapping): of the package: lang, name, version, license, description.
    ship_at (float): what the lower end of a label's interval of F1 must reach for it to be used.
    """
    # Markdown isn't HTML, but shown as such: what could be read as a tag is escaped, by `cell` and `code`.
    environment = Environment(
        loader=PackageLoader("labelwise.package"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (see above)
    )
    environment.filters |= {"figure": figure, "interval": interval, "code": code, "cell": cell}
    values = {
        "meta": meta,
        "version": __version__,
        "name": f"{meta['lang']}_{meta['name']}",
        "metrics": metrics,
        "verdicts": label_verdicts(metrics, ship_at),
        "ship_at": ship_at,
        "merge": merge,
        "seen": tell_seen(metrics),
        "contents": contents,
        "base": "" if is_folder(contents.embedding) else contents.embedding,
        "splits": manifest.splits,
        "counted": counted,
    }
    return Card(*(environment.get_template(name).render(values) for name in ("head.yml.jinja", "card.md.jinja")))


def label_verdicts(metrics: Metrics, ship_at: float) -> dict[Verdict, list[str]]:
    """List the labels that have gold in test by their verdict: may they be used?"""
    found: dict[Verdict, list[str]] = {}
    for row in rank_labels(metrics, ship_at):
        if row.scores.support:
            found.setdefault(row.verdict, []).append(row.label)
    return {verdict: sorted(labels) for verdict, labels in found.items()}


def figure(score: Score) -> str:
    """Write a score with three digits.

    >>> figure(0.76923), figure(None)
    ('0.769', '–')
    """
    return "–" if score is None else f"{score:.3f}"


def interval(scores: Scores) -> str:
    """Write the 95% interval of F1."""
    return f"{figure(scores.f_low)} to {figure(scores.f_high)}" if scores.f_low is not None else "–"


def code(text: str) -> str:
    """Write text as code in Markdown, whatever characters are in it.

    >>> code("PER"), code("a`b")
    ('`PER`', '`` a`b ``')
    """
    text = re.sub(r"\s+", " ", text)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}" if longest else f"{fence}{text}{fence}"


def cell(text: str) -> str:
    """Write text as code in a cell of a Markdown table, in which a vertical bar would end the cell."""
    return code(text).replace("|", "\\|")
