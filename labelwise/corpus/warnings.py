"""Warnings about a pipeline or its scores, for reports."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

MAX_NAMED_LABELS = 6


class ScoreWarning(NamedTuple):
    """A reason not to trust the scores, and a remedy."""

    what: str
    remedy: str


def warnings_about_excluded_labels(excluded_labels: Sequence[str]) -> Iterator[ScoreWarning]:
    """Warn if a pipeline lacks labels of its corpus."""
    if excluded_labels:
        them = "it" if len(excluded_labels) == 1 else "them"
        labels = name_labels(excluded_labels)
        yield ScoreWarning(
            f"{labels[0].upper()}{labels[1:]} excluded from the pipeline and from F1: no training text is fully "
            f"annotated for {them}.",
            "Annotate some texts fully (ner.manual, ner.correct).",
        )


def name_labels(names: Sequence[str]) -> str:
    """List at most MAX_NAMED_LABELS labels."""
    rest = f" and {len(names) - MAX_NAMED_LABELS} more" if len(names) > MAX_NAMED_LABELS else ""
    return f"{'label' if len(names) == 1 else 'labels'} {', '.join(names[:MAX_NAMED_LABELS])}{rest}"
