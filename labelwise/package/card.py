"""The model card: a pipeline's purpose, training data and scores.

Every number is from `metrics/`, or from the corpus's manifest.
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from spacy.language import Language

from labelwise import __version__
from labelwise.base.counts import Scores
from labelwise.base.text import counted, figure
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.manifest import Manifest, RawTexts
from labelwise.evaluate.ranking import MAX_BORDERLINE, group_by_verdict, rank_labels
from labelwise.evaluate.scores import Metrics, describe_seen
from spacy_per_label import PerLabelRecognizer


def write_card(
    nlp: Language,
    meta: Mapping[str, Any],
    metrics: Metrics,
    merge: Ledger,
    corpus: str,
    manifest: Manifest,
    target_f1: float,
    raw: RawTexts | None,
) -> str:
    """Write the card of a pipeline, in Markdown.

    meta (Mapping): package's lang, name, version, description.
    target_f1 (float): minimum lower bound of a ready label's F1 interval.
    """
    # Markdown isn't HTML, but shown as such: what could be read as a tag is escaped, by `code`.
    environment = Environment(
        loader=PackageLoader("labelwise.package"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (see above)
    )
    environment.filters |= {"figure": partial(figure, none="–"), "interval": interval, "code": code}
    ner = nlp.get_pipe("ner")
    return environment.get_template("card.md.jinja").render(
        meta=meta,
        version=__version__,
        name=f"{meta['lang']}_{meta['name']}",
        labels=ner.labels,  # type: ignore[attr-defined]
        per_label=isinstance(ner, PerLabelRecognizer),
        vectors=bool(nlp.vocab.vectors.size),
        metrics=metrics,
        verdicts=group_by_verdict(sorted(row for row in rank_labels(metrics, target_f1) if row.scores.support)),
        target_f1=target_f1,
        close=MAX_BORDERLINE,
        merge=merge,
        corpus=corpus,
        seen=describe_seen(metrics),
        splits=manifest.splits,
        raw=raw,
        counted=counted,
    )


def interval(scores: Scores) -> str:
    """Format the 95% interval of F1, if any."""
    return f"{scores.f_low:.3f} to {scores.f_high:.3f}" if scores.f_low is not None else ""


def code(text: str) -> str:
    """Format text as code in Markdown; a vertical bar would end a table's cell.

    >>> code("PER"), code("a`b")
    ('`PER`', '`` a`b ``')
    """
    text = re.sub(r"\s+", " ", text).replace("|", "\\|")
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}" if longest else f"{fence}{text}{fence}"
