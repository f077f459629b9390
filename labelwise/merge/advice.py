"""Warn after a merge, before anything is trained."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from glob import has_magic
from itertools import combinations
from pathlib import Path

from labelwise.annotations import Reason
from labelwise.base.settings import encode_yaml
from labelwise.base.text import counted, name_counts
from labelwise.corpus.ledger import Ledger, pairwise_f
from labelwise.corpus.manifest import SPLITS
from labelwise.corpus.tokenizer import has_rules
from labelwise.corpus.warnings import NAMED, ScoreWarning, warnings_about_merge, warnings_about_split
from labelwise.datasets.declarations import read_all_entries
from labelwise.merge.rules.settings import Settings, load_tokenizer

MANY_SPANS = 10  # from which chance is no explanation
ALIKE = 0.97  # F1 between two people from which they seem to be one
RENAMED = 0.8  # the share of a label's spans from which another label with the same spans seems to be its new name
MANY = 0.1  # the share of a data set's rows from which unused ones are worth a warning


def warnings(ledger: Ledger, settings: Settings) -> Iterator[ScoreWarning]:
    """Yield the warnings, each with a remedy."""
    yield from warnings_about_merge(ledger)
    for one, other, rows in ((one, *found) for one, of in ledger.other_split.items() for found in of.items()):
        if rows < MANY * ledger.datasets[one]["rows"]:
            continue
        yield ScoreWarning(
            f"Data set {one!r}: {counted(rows, 'answer')} left out; {other!r} declares another split for their texts.",
            "A text is in one split: test before dev before train. Take these texts out of one of the two data sets.",
        )
    yield from _warnings_about_people(ledger)
    if ledger.out_of_order:
        yield ScoreWarning(
            f"Times and the order of files disagree on the latest of {counted(ledger.out_of_order.total(), 'answer')}: "
            f"{name_counts(ledger.out_of_order, NAMED)}.",
            "Times decide if all answers have one. In datasets.yml, list the oldest export first.",
        )
    if spans := ledger.spans["outvoted"]:
        yield ScoreWarning(
            f"{counted(spans, 'span')} outvoted: several annotators marked these texts, and too few of them agree, or "
            "a review decided.",
            "To settle texts without a review in Prodigy, export them with --disagreements; `annotators` in "
            "project.yml says how many must agree.",
        )
    if rows := ledger.rows[Reason.SUPERSEDED_DECISION]:
        yield ScoreWarning(
            f"{counted(rows, 'decision')} superseded: the answers that they were made from have changed since.",
            "`python -m scripts.why corpus --problems` lists them; load them into the page of a new report, and "
            "decide again.",
        )
    for name, counts in ledger.datasets.items():
        if not counts["rows"]:
            yield ScoreWarning(f"Data set {name!r} has no rows.", "Check its path.")
    yield from _small_splits(ledger)
    partly, train = ledger.partly["train"], ledger.texts["train"]
    if partly and settings.coverage == "by-label":
        yield ScoreWarning(
            f"Texts in train that aren't complete for all labels: {partly:,} of {train:,}.", _fewest(ledger)
        )
    if texts := ledger.without_split_by:
        yield ScoreWarning(
            f"{counted(texts, 'text')} without {settings.split_by!r} in the meta.",
            "They were split by text.",
        )
    for one, other in combinations(ledger.labels, 2):
        if _simplified(one) == _simplified(other):
            less, more = sorted((one, other), key=lambda label: ledger.labels[label]["gold"])
            entry = encode_yaml({"rename": {less: more}}).strip()
            yield ScoreWarning(
                f"{less!r} and {more!r} may be one label: their names are nearly equal.",
                f"If they are, add `{entry}` to the entries in datasets.yml that have {less!r}.",
            )
    yield from _one_label(ledger)
    tokenizer = load_tokenizer(settings).nlp
    if (settings.tokenizer.infixes or settings.tokenizer.no_exceptions) and not has_rules(tokenizer):
        yield ScoreWarning(
            f"configs/tokenizer.yml doesn't extend the tokenizer: {type(tokenizer.tokenizer).__name__} has no rules.",
            "Leave infixes and no_exceptions empty.",
        )


def warnings_about_files(ledger: Ledger, declarations: Sequence[Path], out: Path) -> Iterator[ScoreWarning]:
    """Yield the warnings about single files: the first bad row, and labels that an entry hides.

    out (Path): the corpus.
    """
    if ledger.problems:
        from labelwise.merge.commit import first_problem  # it imports pyarrow, which workers don't need

        yield ScoreWarning(f"The first row or span that can't be used: {first_problem(out)}", "Correct it.")
    for _, entry in read_all_entries(declarations):
        lost = [repr(label) for label in entry.labels if not ledger.labels[label]["gold"]]
        several = len(entry.paths) > 1 or has_magic(entry.paths[0])
        if several and lost and len(entry.labels) > 1 and ledger.spans["in superseded task"]:
            yield ScoreWarning(
                f"Data set {entry.name!r} has several files, and no span of {', '.join(lost[:NAMED])}. If two files "
                "have an answer to a text, only the last one counts.",
                "If each file was annotated for other labels, give each an entry of its own in datasets.yml.",
            )


def _one_label(ledger: Ledger) -> Iterator[ScoreWarning]:
    """Warn of two labels that seem to be one, since annotators renamed it: by their spans, or by `rename` itself."""
    for label, of in ledger.lost_spans.get(Reason.SAME_SPAN, {}).items():
        for by, n in of.items():
            if n >= MANY_SPANS and n >= RENAMED * min(ledger.labels[one]["gold"] for one in (label, by)):
                entry = encode_yaml({"rename": {label: by}}).strip()
                yield ScoreWarning(
                    f"{n:,} of {counted(ledger.labels[label]['gold'], 'span')} of {label!r} are spans of {by!r}, too.",
                    f"If it is another name of that label, add `{entry}` to the entries in datasets.yml that have it.",
                )
    for name, renames in ledger.renamed.items():
        targets = {new for to in renames.values() for new in to}
        for old, to in renames.items():
            if old in ledger.labels and old not in targets:
                entry = encode_yaml({"rename": {old: min(to)}}).strip()
                yield ScoreWarning(
                    f"Data set {name!r} renames {old!r} to {min(to)!r}, but another one still declares {old!r}.",
                    f"If that is the same label, add `{entry}` to its entry in datasets.yml, too.",
                )


def _warnings_about_people(ledger: Ledger) -> Iterator[ScoreWarning]:
    """Warn of people who are taken for one, or for two, and of names that nobody has who answered."""
    replaced = Counter({f"{one} by {by}": n for one, of in ledger.replaced.items() for by, n in of.items()})
    if replaced:
        yield ScoreWarning(
            f"{counted(replaced.total(), 'answer')} replaced by the same person's later one in another data set: "
            f"{name_counts(replaced, NAMED)}.",
            "If two people share a name, give an entry `annotator: {NAME: ANOTHER}` in datasets.yml.",
        )
    if ledger.unknown_annotators:
        names = ", ".join(map(repr, ledger.unknown_annotators))
        yield ScoreWarning(
            f"`annotators` names {names}, and no answer has that name.", "Correct `annotators` in project.yml."
        )
    for name, (people, known) in ledger.unmatched_people.items():
        yield ScoreWarning(
            f"Data set {name!r}: `annotator` names {', '.join(map(repr, people))}, and no answer is theirs.",
            "Correct it in datasets.yml: it says who names in answers are, such as `{1: ann}`, or who answered where "
            f"there is none. The names here: {', '.join(map(repr, filter(None, known))) or 'none'}.",
        )
    for (one, other), counts in ledger.pairs.items():
        f = pairwise_f(counts["both"], counts["spans"]) or 0.0
        if {one, other} <= ledger.datasets.keys() and counts["both"] >= MANY_SPANS and f >= ALIKE:
            yield ScoreWarning(
                f"{one!r} and {other!r} name nobody, so they count as two people; in "
                f"{counted(counts['texts'], 'text')} they mark the same (F1 {f:.3f}).",
                "If one is a later export of the other, list both files in one entry of datasets.yml, the oldest "
                "first: `path: [OLD, NEW]`.",
            )


def _simplified(label: str) -> str:
    """Fold a label's case, Unicode form, plural, and the separators of its words.

    >>> _simplified("Birth Places"), _simplified("BIRTH_PLACE")
    ('birthplace', 'birthplace')
    """
    return re.sub(r"[\s_-]", "", unicodedata.normalize("NFKC", label).casefold()).removesuffix("s")


def _fewest(ledger: Ledger) -> str:
    """Name the labels that the fewest texts in train are complete for, and the consequence for training."""
    complete = {label: ledger.complete["train"][label] for label in ledger.labels}
    least = sorted((n, label) for label, n in complete.items() if n < ledger.texts["train"])
    fewest = ", ".join(f"{label} {texts:,}" for texts, label in least[:NAMED])
    return (
        f"Each label is learned from the texts that are complete for it; the fewest are {fewest}. If unmarked "
        "words are no entities there, declare absent labels, or set coverage: outside."
    )


def _small_splits(ledger: Ledger) -> Iterator[ScoreWarning]:
    """Yield warnings about splits that are empty, or too small."""
    distinct = sum(ledger.texts[split] for split in SPLITS)
    for split in SPLITS:
        if not ledger.texts[split]:
            remedy = "Lower both ratios" if split == "train" else f"Raise {split}_ratio"
            remedy += f", or declare a data set with split: {split}."
            if distinct < len(SPLITS):  # no ratio helps
                remedy = f"The data sets have {counted(distinct, 'distinct text')}; add other texts."
            yield ScoreWarning(f"No text is in {split}.", remedy)
        elif split != "train" and distinct >= len(SPLITS):
            gold: Mapping[str, int] = ledger.gold.get(split, {})
            missing = [label for label in ledger.labels if not gold.get(label)]
            yield from warnings_about_split(split, ledger.texts[split], missing)
