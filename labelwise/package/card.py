"""The model card: what a pipeline is for, what it was trained on, and how good it is, for people and the hub.

The head, in YAML, is what the Hugging Face hub reads (https://huggingface.co/docs/hub/model-cards). Every number is one
of `metrics/`, or of the corpus's manifest.
"""

import re
from typing import Any, NamedTuple

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from labelwise import __version__
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.manifest import Manifest
from labelwise.evaluate.ranking import rank_labels
from labelwise.evaluate.scores import Metrics, Score, Scores, tell_seen
from labelwise.package.contents import Contents
from labelwise.text import counted

SPLITS = ("train", "dev", "test")


class Card(NamedTuple):
    """A model card.

    head (str): what the hub reads, in YAML.
    body (str): what people read, in Markdown.
    """

    head: str
    body: str

    def __str__(self) -> str:
        """Put them together, as the hub has it."""
        return f"---\n{self.head}---\n\n{self.body}"


class CardLabel(NamedTuple):
    """A label on the card.

    scores (Scores | None): None if test has no gold of it.
    spans (Scores | None): those of all spans, where gold nests.
    complete (int): texts that were annotated for it.
    gold (dict): its spans by split.
    """

    name: str
    scores: Scores | None
    spans: Scores | None
    complete: int
    gold: dict[str, int]


def write_card(
    meta: dict[str, Any],
    *,
    metrics: Metrics,
    merge: Ledger,
    manifest: Manifest,
    contents: Contents,
    wheel: str,
    digests: bool = False,
) -> Card:
    """Write the card of a pipeline.

    meta (dict): of the package: lang, name, version, license, description.
    wheel (str): the file's name.
    digests (bool): it has those of its training's texts.
    """
    labels = [
        CardLabel(
            name,
            scores if (scores := metrics.all_gold.labels.get(name)) and scores.support else None,
            metrics.all_spans and metrics.all_spans.labels.get(name),
            merge.labels[name].get("complete", 0),
            {split: merge.gold[split][name] if split in merge.gold else 0 for split in SPLITS},
        )
        for name in contents.labels
        if name in merge.labels
    ]
    values = {
        "meta": meta,
        "version": __version__,
        "name": f"{meta['lang']}_{meta['name']}",
        "labels": labels,
        "all": metrics.all_gold,
        "all_spans": metrics.all_spans,
        "costliest": next((row for row in rank_labels(metrics) if row.points > 0 and not row.few), None),
        "scored": metrics.texts,
        "seen": tell_seen(metrics),
        "calibration": metrics.calibration_error,
        "contents": contents,
        "foreign": [name for name in contents.labels if name not in merge.labels],
        "splits": msgspec.to_builtins(manifest.splits),
        "digest": merge.digest[:8],
        "wheel": wheel,
        "digests": digests,
        "counted": counted,
    }
    templates = (_environment().get_template(name) for name in ("head.yml.jinja", "card.md.jinja"))
    return Card(*(template.render(values) for template in templates))


def _environment() -> Environment:
    # Markdown isn't HTML, but shown as such: what could be read as a tag is escaped, by `cell` and `code`.
    environment = Environment(
        loader=PackageLoader("labelwise.package"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (see above)
    )
    environment.filters |= {"figure": figure, "interval": interval, "code": code, "cell": cell}
    return environment


def figure(score: Score) -> str:
    """Write a score with three digits.

    >>> figure(0.76923), figure(None)
    ('0.769', '–')
    """
    return "–" if score is None else f"{score:.3f}"


def interval(scores: Scores) -> str:
    """Write the 95% interval of F."""
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
