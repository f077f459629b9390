"""The import checks of a merge: were datasets read as intended, and is the corpus fit for training?

A check is an entry in a module's table: a query and its words (`check_kinds`). After a check that stops, only `why`
reads the corpus, until the dataset's entry declares its form, or `expect_losses: true`.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from labelwise.base.console import msg
from labelwise.base.settings import DATASETS
from labelwise.corpus.import_checks import ImportCheck
from labelwise.datasets.entries import write_entries
from labelwise.datasets.undeclared import Undeclared, patterns_in
from labelwise.merge.check_kinds import Kind, Merged, Words, nothing, write_words
from labelwise.merge.corpus_checks import ADVICE
from labelwise.merge.reading_checks import READING
from labelwise.sources.formats import SUFFIXES

UNDECLARED = "{file}{others:? and %s like it}: {dataset!r} isn't declared: {problem}"
LEAVE_OUT = "To leave it out for good, add an entry with `skip: true` to {declarations}."

# Files that no entry declares are found before the merge, and not stored.
FILES = (
    Kind("no data", nothing, UNDECLARED),
    Kind("unreadable file", nothing, UNDECLARED, LEAVE_OUT),
    Kind(
        "undeclared file",
        nothing,
        UNDECLARED,
        f"{LEAVE_OUT} To merge it, add there, with all labels that annotators were shown",
        "{entry}",
    ),
)
KINDS = {kind.name: kind for kind in (*READING, *ADVICE, *FILES)}


def check_undeclared(folder: Path, undeclared: Iterable[Undeclared]) -> list[ImportCheck]:
    """List undeclarable files, each with the entry to add; of unreadable ones with equal problems, the first."""
    checks = []
    alike: dict[tuple[str, str], ImportCheck] = {}
    for candidate in undeclared:
        file = folder / candidate.entry.paths[0]
        patterns = patterns_in(file) if file.is_dir() else []
        path, labels = patterns or candidate.entry.path, candidate.entry.labels or ("LABEL",)
        entry = write_entries([msgspec.structs.replace(candidate.entry, path=path, labels=labels)])
        other = "undeclared file" if candidate.readable else "unreadable file"
        kind = other if patterns or file.name.endswith(SUFFIXES) else "no data"
        values = {
            "file": str(file),
            "others": 0,
            "problem": candidate.problem,
            "declarations": str(folder / DATASETS),
            "entry": entry,
        }
        check = ImportCheck(kind=kind, dataset=candidate.entry.name, values=values)
        first = alike.setdefault((kind, candidate.problem.replace(file.name, "")), check)
        if first is check or kind == "undeclared file":
            checks.append(check)
        else:
            first.values["others"] += 1
    return checks


def find_checks(merged: Merged) -> list[ImportCheck]:
    """Run all checks, stopping ones first; skip advice if some stop."""
    checks = sorted((check for kind in READING for check in kind.find(merged)), key=lambda check: not check.stops)
    stopped = any(check.stops for check in checks)
    return checks if stopped else [*checks, *(check for kind in ADVICE for check in kind.find(merged))]


def describe(check: ImportCheck) -> Words:
    """Return the words of a finding."""
    return write_words(KINDS[check.kind], check)


def print_checks(checks: Iterable[ImportCheck]) -> None:
    """Print findings with examples, remedy and lines to paste."""
    for check in checks:
        sentence, remedy, lines = describe(check)
        (msg.fail if check.stops else msg.warn)(sentence)
        for place in check.sample or check.places:
            print(f"    {place}")
        if remedy:
            msg.more(f"{remedy}:" if lines else remedy)
        for line in lines:
            print(line if line.startswith("- ") else f"    {line}")  # an entry begins a line of datasets.yml
