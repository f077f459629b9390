"""Warn about reasons not to trust a pipeline, or its scores, after a merge and in a report."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from labelwise.base.text import counted
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.manifest import Split

FEW_TEXTS = 20  # in test, below which scores say little
NAMED = 6  # labels, or data sets, that a warning names
FOLLOWS = {
    "dev": "training chooses the best pipeline without",
    "test": "scores say nothing about",
}


class ScoreWarning(NamedTuple):
    """A reason not to trust the scores, and a remedy."""

    what: str
    remedy: str


def warnings_about_split(split: Split, texts: int, without_gold: Sequence[str]) -> Iterator[ScoreWarning]:
    """Yield warnings about the size of a split.

    texts (int): the number of its texts.
    without_gold (Sequence[str]): the labels without gold in it.
    """
    remedy = f"Annotate more texts, raise {split}_ratio in project.yml, or declare a data set as split: {split}."
    if split == "test" and texts < FEW_TEXTS:
        yield ScoreWarning(f"Test has only {counted(texts, 'text')}, so scores say little.", remedy)
    if without_gold:
        them = "it" if len(without_gold) == 1 else "them"
        yield ScoreWarning(f"No gold of {name_labels(without_gold)} in {split}: {FOLLOWS[split]} {them}.", remedy)


def warnings_about_untaught(untaught: Sequence[str]) -> Iterator[ScoreWarning]:
    """Warn if a pipeline lacks labels of its corpus."""
    if untaught:
        them = "it" if len(untaught) == 1 else "them"
        yield ScoreWarning(
            f"The pipeline and F1 leave out {name_labels(untaught)}, because no text in train is complete for {them}.",
            "Annotate some texts for all of their spans (ner.manual, ner.correct).",
        )


def warnings_about_merge(counts: Ledger, untaught: Sequence[str] = ()) -> Iterator[ScoreWarning]:
    """Yield warnings about omissions, unknown names, and texts in two splits.

    untaught (Sequence[str]): labels that a pipeline lacks, which have a warning of their own.
    """
    if counts.problems:
        yield ScoreWarning(
            f"{counted(counts.problems, 'row or span', 'rows or spans')} can't be used.",
            "`python -m scripts.why corpus --problems` lists each with its data set, file, line and reason.",
        )
    if counts.undeclared:
        spans = [(f"{name}: {label}", n) for name, of in sorted(counts.undeclared.items()) for label, n in of.items()]
        names = ", ".join(f"{name} ({n:,})" for name, n in spans[:NAMED])
        yield ScoreWarning(
            f"Spans of undeclared labels aren't used: {names}.",
            "If the texts were annotated for a label, add it to the labels of their data set in datasets.yml.",
        )
    renamed = [(name, old, *to) for name, of in counts.renamed.items() for old, new in of.items() for to in new.items()]
    if unused := sorted(f"{name}: {old} to {new}" for name, old, new, spans in renamed if not spans):
        yield ScoreWarning(
            f"`rename` names labels that no span has: {', '.join(unused[:NAMED])}.",
            "Correct `rename` in datasets.yml.",
        )
    nowhere = [label for label, found in counts.labels.items() if not found.get("complete") and label not in untaught]
    if nowhere:
        yield ScoreWarning(
            f"No text is complete for {name_labels(nowhere)}: a pipeline learns little from spans judged one by one.",
            "Annotate some texts for all of their spans (ner.manual, ner.correct); datasets.yml declares the label. "
            "By default, training leaves out such labels.",
        )
    if not counts.compared:
        yield ScoreWarning(
            "The merge didn't look for test texts that are nearly equal to training texts.",
            "Set near_duplicates: report, or group, in project.yml.",
        )
    if pairs := sum(of.total() for of in counts.near_duplicates.values()):
        leaks = sum(of["test"] for of in counts.near_duplicates.values())
        yield ScoreWarning(
            f"{counted(pairs, 'pair')} of nearly equal texts in two splits; {leaks:,} of them with a text in test.",
            "Set near_duplicates: group in project.yml to keep them in one; corpus/near_duplicates.jsonl has each.",
        )


def name_labels(names: Sequence[str]) -> str:
    """Name at most NAMED labels."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{'label' if len(names) == 1 else 'labels'} {', '.join(names[:NAMED])}{more}"
