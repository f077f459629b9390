"""Warn about reasons not to trust a pipeline, or its scores, in a report."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

NAMED = 6  # labels that a warning names


class ScoreWarning(NamedTuple):
    """A reason not to trust the scores, and a remedy."""

    what: str
    remedy: str


def warnings_about_untaught(untaught: Sequence[str]) -> Iterator[ScoreWarning]:
    """Warn if a pipeline lacks labels of its corpus."""
    if untaught:
        them = "it" if len(untaught) == 1 else "them"
        yield ScoreWarning(
            f"The pipeline and F1 leave out {name_labels(untaught)}, because no text in train is complete for {them}.",
            "Annotate some texts for all of their spans (ner.manual, ner.correct).",
        )


def name_labels(names: Sequence[str]) -> str:
    """Name at most NAMED labels."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{'label' if len(names) == 1 else 'labels'} {', '.join(names[:NAMED])}{more}"
