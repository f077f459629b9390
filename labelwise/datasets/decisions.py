"""Decisions about spans, saved by a report's page, and kept in `assets/decisions`.

    {"dataset": "Material", "text": "0a5f…", "label": "Material", "answer": "91c2…", "verdict": "gold is wrong",
     "removed": [4, 8], "added": [4, 12], "note": "the unit belongs to it"}

A decision is about a dataset's annotation of a text for a label, and a span to remove, add, or both, to move it. "gold
is wrong" makes the change, "gold is right" declines it, "policy" asks for a rule. `merge.rules.decisions` applies them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from labelwise.annotations import Problem, Reason
from labelwise.base.conflicts import check_edited
from labelwise.base.errors import InputError
from labelwise.base.files import atomic
from labelwise.base.text import DECODE_ERRORS, counted
from labelwise.corpus.manifest import is_corpus
from labelwise.sources.files import read_file
from labelwise.sources.json_text import BOM

DECISIONS = "decisions.jsonl"  # new decisions are added to this file in a project's folder
MAX_SHOWN_CHARS = 100

Offset = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
Offsets = tuple[Offset, Offset]


class Decision(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One decision.

    text (str): key of the text, in hexadecimal.
    answer (str): digest of the answer when it was decided; see `annotations.answer_digest`.
    removed, added (tuple | None): start and end, in characters; one may be None.
    """

    dataset: str
    text: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{24}\Z")]
    label: str
    answer: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{12}\Z")]
    verdict: Literal["gold is wrong", "gold is right", "policy"]
    removed: Offsets | None = None
    added: Offsets | None = None
    note: str = ""

    def __post_init__(self) -> None:
        for start, end in self.spans:
            if start >= end:
                raise ValueError(f"[{start}, {end}] isn't a span: its end must come after its start")
        if self.removed == self.added:
            raise ValueError("`removed` and `added` are equal; correct one of them")

    @property
    def spans(self) -> list[Offsets]:
        """List its spans."""
        return [span for span in (self.removed, self.added) if span]

    @property
    def about(self) -> tuple[str, str, str, str, Offsets | None, Offsets | None]:
        """Return the span that it is about, removed or else added; the last decision about a span counts."""
        return (self.dataset, self.text, self.label, self.answer, self.removed, None if self.removed else self.added)

    def corrects(self, other: "Decision") -> bool:
        """Return whether it adds, with another label, the span that another decision removes."""
        if self.removed or other.added or not self.added or not other.removed:
            return False
        overlap = self.added[0] < other.removed[1] and other.removed[0] < self.added[1]
        same = (self.text, self.verdict) == (other.text, other.verdict)
        return same and overlap and self.label != other.label


class DecisionRow(NamedTuple):
    """A row of a file of decisions: a decision or a problem."""

    file: str
    line: int
    decision: Decision | None
    problem: Problem | None = None


_decode = msgspec.json.Decoder(Decision).decode


def read_decisions(file: Path) -> Iterator[DecisionRow]:
    """Yield the nonblank rows of a file; refuse one with a git conflict."""
    content = read_file(file)
    check_edited(content, f"{file}")
    yield from decode_decisions(content, file.name)


def decode_decisions(content: bytes, name: str = DECISIONS) -> Iterator[DecisionRow]:
    """Yield the nonblank rows of a file's content."""
    for line, row in enumerate(content.removeprefix(BOM).splitlines(), 1):
        if not row.strip():
            continue
        try:
            yield DecisionRow(name, line, _decode(row))
        except DECODE_ERRORS as error:
            reason = Reason.MALFORMED if isinstance(error, msgspec.ValidationError) else Reason.BAD_JSON
            shown = row.decode("utf8", "backslashreplace")[:MAX_SHOWN_CHARS]
            detail = f"{error}: {shown}; correct the row, or delete it"
            yield DecisionRow(name, line, None, Problem(line, reason, detail))


def find_decisions(folder: Path) -> Iterator[DecisionRow]:
    """Yield the rows of a folder's files, sorted by name."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder; create it, or leave out --decisions")
    for file in sorted(folder.glob("*.jsonl")):
        yield from read_decisions(file)


def list_cases(rows: Iterable[DecisionRow]) -> list[Decision]:
    """Return one decision per case; a correction of a label is two rows: remove a span, then add it."""
    last = {row.decision.about: row.decision for row in rows if row.decision}
    pairs = pairwise([None, *last.values()])
    return [one for before, one in pairs if one and not (before and one.corrects(before))]


class Added(NamedTuple):
    """Counts of added rows, unusable rows, and rows and cases in the project now."""

    counts: Counter[str]
    problems: list[DecisionRow]
    total: int
    cases: int


def add_decisions(file: Path, folder: Path, corpus: Path | None = None) -> Added:
    """Add a file's decisions to a folder, which keeps the last about each span; omit bad rows.

    RAISES (InputError): if the file has no decision about a text of the corpus, the folder's file has a bad row, or
        another process is adding to it.
    """
    rows = list(read_decisions(file))
    problems = [row for row in rows if row.decision is None]
    counts = Counter({"can't be used": len(problems)})
    new: dict[tuple[object, ...], Decision] = {}
    for decision in (row.decision for row in rows if row.decision):
        counts["replaced decision"] += new.pop(decision.about, None) is not None
        new[decision.about] = decision
    if not new:
        first = f"; the first of {counted(len(problems), 'row')}: {problems[0].problem}" if problems else ""
        raise InputError(f"{file}: it has no decision; give the file that you saved in a report{first}")
    from labelwise.corpus.answers import read_answers  # it imports pyarrow, 40 MB that a merge's workers don't need

    texts = {decision.text for decision in new.values()}
    if corpus and is_corpus(corpus) and not next(read_answers(corpus, texts), None):
        raise InputError(
            f"{file}: none of its texts is in {corpus}; name the right file: this may be another project's"
        )
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / DECISIONS
    with atomic(target) as [path]:  # this locks the file
        merged: dict[tuple[object, ...], Decision] = {}
        for row in read_decisions(target) if target.exists() else ():
            if row.decision is None:
                raise InputError(f"{target}:{row.line}: {row.problem}")
            merged[row.decision.about] = row.decision
        for about, decision in new.items():
            if merged.get(about) == decision:
                counts["duplicate"] += 1
            else:
                counts["replaces an earlier one" if merged.pop(about, None) else "new"] += 1
                merged[about] = decision
        path.write_bytes(b"".join(msgspec.json.encode(decision) + b"\n" for decision in merged.values()))
    return Added(counts, problems, len(merged), len(list_cases(read_decisions(target))))
