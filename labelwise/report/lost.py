"""Accepted spans that aren't entities: the spans that they lost to, and what would save them.

Where a span has no token boundaries, an infix that would split the tokens there is proposed, and tried: on how many of
the spans that were looked at it gives boundaries. None is proposed that would split words of letters alone.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from spacy.language import Language
from spacy.tokens import Doc

from labelwise.common.errors import InputError
from labelwise.corpus.tokenizer import TokenizerRules, has_rules, make_nlp, read_tokenizer

MOST = 8  # groups
FEWEST = 2  # spans of a group from which rules are tried
EXAMPLES = 3  # of a group that are shown
TRIED = 50  # spans of a group that an infix is tried on
AROUND = 40  # characters on either side
NO_BOUNDARY = "no token boundary"
MOVE = "alignment: expand takes all of the word; or put the span right"
REMEDIES = {
    "accept/reject": "conflicts, in project.yml, says which answer counts",
    "outvoted": "annotators, in project.yml, says how many have to agree",
}
BOTH = "recognizer: per-label learns both; overlap, in project.yml, says which is the entity"
OWN_LABEL = "spans of one label that overlap can't be learnt: keep one, or give the other a label of its own"


class LostTask(msgspec.Struct):
    """A line of lost_spans.jsonl: a text, the span that lost, and what it lost to."""

    class Span(msgspec.Struct):
        """A span of the text."""

        start: int
        end: int
        label: str
        lost: bool

    class Meta(msgspec.Struct):
        """Why, whether a head for its label learns it as well, and in which document."""

        reason: str
        learnt: bool = False
        doc: str = ""

    text: str
    spans: list[Span]
    meta: Meta


class Example(NamedTuple):
    """A span that lost.

    text (str): the text around it, with the span between start and end.
    against (list[str]): the tokens that it cuts, or the text of what it lost to.
    """

    text: str
    start: int
    end: int
    label: str
    against: list[str]
    doc: str


class LostGroup(NamedTuple):
    """Spans that lost for the same reason to the same: to a label, or to the tokenizer between the same characters.

    what (str): "LOST, KEPT": labels; or the characters between which there is no boundary; see `_class`.
    learnt (int): spans that a head for each label learns as well.
    """

    reason: str
    what: str
    spans: int
    learnt: int
    remedy: str
    examples: list[Example]


def group_lost(file: Path, tokenizer: Path) -> list[LostGroup]:
    """Group the spans that lost, the most frequent groups first; none if there is no such file.

    file, tokenizer (Path): lost_spans.jsonl and tokenizer.json of a corpus.
    RAISES (InputError): a file isn't what a merge writes.
    """
    if not file.is_file():
        return []
    lang, rules = read_tokenizer(tokenizer)
    nlp: Any = make_nlp(lang, rules)
    counts: Counter[tuple[str, str]] = Counter()
    learnt: Counter[tuple[str, str]] = Counter()
    kept: dict[tuple[str, str], list[Example]] = {}
    for task in _read(file):
        example = _example(task, nlp)
        name = task.meta.reason, _what(task, example, nlp)
        counts[name] += 1
        learnt[name] += task.meta.learnt
        if len(kept.setdefault(name, [])) < TRIED:
            kept[name].append(example)
    most = sorted(counts, key=lambda name: (-counts[name], name))[:MOST]
    return [
        LostGroup(
            *name,
            counts[name],
            learnt[name],
            _remedy(name, learnt[name], kept[name], nlp, lang, rules),
            kept[name][:EXAMPLES],
        )
        for name in most
    ]


def _read(file: Path) -> Iterator[LostTask]:
    decoder = msgspec.json.Decoder(LostTask)
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield decoder.decode(line)
            except msgspec.DecodeError as error:
                raise InputError(f"{file}:{number}: not a span that lost ({error}); run the merge again") from error


def _example(task: LostTask, nlp: Language) -> Example:
    """Cut the text around a span, from white space to white space, which no token reaches over."""
    lost = next(span for span in task.spans if span.lost)
    before, after = task.text[: lost.start], task.text[lost.end :]
    first = max(before.rfind(" ", 0, max(0, len(before) - AROUND)) + 1, 0)
    space = after.find(" ", AROUND)
    last = lost.end + space if space >= 0 else len(task.text)
    text = task.text[first:last]
    start, end = lost.start - first, lost.end - first
    ends = [(token.idx, token.idx + len(token)) for token in nlp(text)]
    cut = [text[first:last] for first, last in ends if first < start < last or first < end < last]
    against = [task.text[span.start : span.end] for span in task.spans if not span.lost] or cut
    return Example(text, start, end, lost.label, against, task.meta.doc)


def _what(task: LostTask, example: Example, nlp: Language) -> str:
    if task.meta.reason != NO_BOUNDARY:
        return ", ".join(span.label for span in sorted(task.spans, key=lambda span: not span.lost))
    place = _missing_boundary(nlp(example.text), example)
    return _class(example.text[place - 1]) + "|" + _class(example.text[place]) if place else ""


def _missing_boundary(doc: Doc, example: Example) -> int:
    """Find the first end of a span that isn't between two tokens; 0 if there is none."""
    starts = {token.idx for token in doc}
    ends = {token.idx + len(token) for token in doc}
    if example.start not in starts:
        return example.start
    return 0 if example.end in ends else example.end


def _class(char: str) -> str:
    """Write a digit as 0, a capital of A to Z as A, another letter or a mark as a, anything else as it is."""
    if char.isdecimal():
        return "0"
    if char.isalpha() or unicodedata.category(char).startswith("M"):
        return "A" if "A" <= char <= "Z" else "a"
    return char


def _remedy(
    name: tuple[str, str], learnt: int, examples: list[Example], nlp: Any, lang: str, rules: TokenizerRules
) -> str:
    reason, what = name
    if reason != NO_BOUNDARY:
        return REMEDIES.get(reason, BOTH if learnt else OWN_LABEL)
    if len(examples) < FEWEST or not has_rules(nlp):
        return MOVE
    cut = sorted({token for one in examples for token in one.against})
    exceptions = "|".join(re.escape(token) for token in cut if token in (nlp.tokenizer.rules or {}))
    for key, added in (("infixes", propose_infix(what)), ("no_exceptions", exceptions)):
        if added and (saved := _count_saved(examples, lang, rules, key, added)):
            found = f"{saved:,} of {len(examples):,}"
            quoted = "'" + added.replace("'", "''") + "'"
            return f"tokenizer.{key}: - {quoted} would save {found}; see what else it splits"
    return MOVE


def _count_saved(examples: list[Example], lang: str, rules: TokenizerRules, key: str, added: str) -> int:
    """Count the spans that would have boundaries with one rule more."""
    try:
        nlp = make_nlp(lang, msgspec.structs.replace(rules, **{key: (*getattr(rules, key), added)}))
    except InputError:
        return 0
    return sum(not _missing_boundary(nlp(one.text), one) for one in examples)


def propose_infix(what: str) -> str:
    r"""Write a regular expression that matches between two kinds of characters; none if it would split words.

    >>> propose_infix("0|a")
    '(?<=[0-9])(?=[^\\W\\d_])'
    >>> propose_infix("a|a")
    ''
    """
    before, _, after = what[:1], what[1:2], what[2:]
    letters = {"a": r"[^\W\d_]", "A": r"[A-Z]"}
    both = before in letters and after in letters
    if not before or not after or before == after or (both and (before, after) != ("a", "A")):
        return ""
    patterns = {**letters, "0": "[0-9]"} | ({"a": "[a-z]"} if both else {})
    one, other = (patterns.get(char, re.escape(char)) for char in (before, after))
    return f"(?<={one})(?={other})"
