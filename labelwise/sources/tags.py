"""Turn tokens and tags into tasks.

`find_scheme` finds the notation of a file's tags, from all of them, before the first task: prefix and label, in BIO
(also called IOB2), IOB1, BILOU (BILUO, BIOES, IOBES), BMES or BMEWO, or labels alone. They may be spelled B-PER, B_PER,
PER-B, PER_B, b-per, BPER, or NE=B-PER among other features; brackets such as `(PER*` are CoNLL-2012's.

Tags are read as by conlleval (https://www.clips.uantwerpen.be/conll2002/ner/bin/conlleval.txt): B, U, S and W begin a
span, and so does any tag after another label or outside; L, E, U, S and W end it. `B-PER|B-LOC` are two tags, also with
one of `,;+/` between them. If no tag has a label, it is NO_LABEL, which stands for their dataset's only one.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from labelwise.annotations import Problem, Reason
from labelwise.base.text import is_integer
from labelwise.sources.clean import RawSpan
from labelwise.sources.offsets import UNSPACED
from labelwise.sources.prodigy_row import Converted, ProdigyRow

TOKENS, TAGS = ("tokens", "words"), ("ner_tags", "ner", "tags", "labels")  # their keys in rows, and columns
OUTSIDE = ("O", "_", "-", "", "o")
# In files without O, where it has more tokens than any other tag.
OTHER_OUTSIDE = ("0", "NONE", "None", "OTHER", "null")
NO_LABEL = "(no label)"
MIN_SPELLED = 0.9  # share of the tags that have a spelling
PREFIXED = re.compile(r"([BIUSLEMW])-(.+)", re.DOTALL)
BETWEEN = re.compile(r"[|,;+/]")  # two tags of a token
BEGINS = re.compile(r"[BUS]-.", re.DOTALL)  # a tag that begins a span, after any other
# The spellings of tags. M and W are prefixes only where their label has others, too.
PLAIN = re.compile(r"(?P<prefix>[BIUSLE])-(?P<label>.*)", re.DOTALL)
MIDDLE = re.compile(r"(?P<prefix>[BIUSLEMW])-(?P<label>.*)", re.DOTALL)
UNHYPHENATED = re.compile(r"(?P<prefix>[BIUSLEMW])-?(?P<label>)")
FEATURE = re.compile(r"(?:.*\|)?(?:NE|NER|name)=(?P<prefix>[BIUSLE])-(?P<label>[^|]+)(?:\|.*)?", re.IGNORECASE)
BELOW = re.compile(r"(?P<prefix>[BIUSLEMW])[_:./\u2010-\u2015](?P<label>.+)")
BEHIND = re.compile(r"(?P<label>.+)[-_:./\u2010-\u2015](?P<prefix>[BIUSLEMW])")
GLUED = re.compile(r"(?P<prefix>[BIUSLE])(?P<label>[A-Z]+)")
LOWER_CASE = re.compile(r"(?P<prefix>[biuslemw])-(?P<label>.+)")
BRACKETED = re.compile(r"\*|\((?P<label>[A-Za-z_][\w.-]*)\*?\)?|\*\)")


class Scheme(NamedTuple):
    """The notation of a file's tags: spelling of prefix and label (None: labels alone), and tags outside spans."""

    spelled: re.Pattern[str] | None = PLAIN
    outside: frozenset[str] = frozenset(OUTSIDE)


BIO = Scheme()


def find_scheme(tags: Mapping[str, int]) -> Scheme:
    """Find the notation of tags."""
    outside = frozenset(OUTSIDE)
    most = max(tags, key=tags.__getitem__, default="")
    if most in OTHER_OUTSIDE and not tags.keys() & {"O", "o"}:
        outside |= {most}
    span_tags = {tag: n for tag, n in tags.items() if tag not in outside}
    words = sum(span_tags.values())

    def share(fits: Callable[[str], object]) -> float:
        return sum(n for tag, n in span_tags.items() if fits(tag)) / max(words, 1)

    if not span_tags:
        return Scheme(PLAIN, outside)
    if any(tag[0] == "B" for tag in span_tags) and all(map(UNHYPHENATED.fullmatch, span_tags)):
        return Scheme(UNHYPHENATED, outside)
    if any(map(FEATURE.fullmatch, span_tags)) and share(lambda tag: "=" in tag) >= MIN_SPELLED:
        return Scheme(FEATURE, outside)
    if any(tag.startswith("(") for tag in span_tags) and share(BRACKETED.fullmatch) >= MIN_SPELLED:
        return Scheme(BRACKETED, outside)
    recurring = find_recurring(span_tags)
    middle = any(tag[:2] in ("M-", "W-") and tag[2:] in recurring for tag in span_tags)
    plain = MIDDLE if middle else PLAIN
    if recurring or share(plain.fullmatch) >= 0.5:
        return Scheme(plain, outside)
    for spelled in (BELOW, BEHIND, LOWER_CASE):
        if share(spelled.fullmatch) >= MIN_SPELLED and find_recurring(span_tags, spelled):
            return Scheme(spelled, outside)
    recurring = find_recurring(span_tags, GLUED)
    if recurring and share(lambda tag: tag[1:] in recurring or tag[0] == "B") >= MIN_SPELLED:
        return Scheme(GLUED, outside)
    return Scheme(None, outside)


def find_recurring(tags: Iterable[str], spelled: re.Pattern[str] = MIDDLE) -> set[str]:
    """Return the labels with two prefixes or more, B or S among them."""
    prefixes: dict[str, set[str]] = {}
    for match in filter(None, map(spelled.fullmatch, tags)):
        prefixes.setdefault(match["label"], set()).add(match["prefix"].upper())
    return {
        label
        for label, own_prefixes in prefixes.items()
        if label and len(own_prefixes) > 1 and own_prefixes & {"B", "S"}
    }


@lru_cache(maxsize=10_000)
def split_tag(tag: str, scheme: Scheme = BIO) -> tuple[tuple[str, str], ...]:
    """Return (prefix, label) of each part of a tag, such as B-PER|B-LOC; () if it is outside.

    A label alone has the prefix I; a tag such as `B-`, among others with a label, has an empty label.
    """
    if tag in scheme.outside or not scheme.spelled:
        return () if tag in scheme.outside else (("I", tag),)
    pieces = BETWEEN.split(tag) if scheme.spelled in (PLAIN, MIDDLE) else []
    if len(pieces) > 1 and all(piece in scheme.outside or scheme.spelled.fullmatch(piece) for piece in pieces):
        return tuple(part for piece in pieces for part in split_tag(piece, scheme))
    match = scheme.spelled.fullmatch(tag)
    if scheme.spelled is BRACKETED:
        return (("B", match["label"]),) if match and match["label"] else ()
    if not match:
        return () if scheme.spelled is FEATURE else (("I", tag),)
    return ((match["prefix"].upper(), NO_LABEL if scheme.spelled is UNHYPHENATED else match["label"]),)


def plain_brackets(tags: Iterable[str]) -> Iterator[str]:
    """Convert the brackets of a sentence to BIO tags: `(PER*`, `*)`, `*` to B-PER, I-PER, O."""
    label = ""
    for tag in tags:
        match = BRACKETED.fullmatch(tag)
        begun = (match["label"] or "") if match else ""
        label = begun or label
        yield f"{'B' if begun else 'I'}-{label}" if label else "O"
        label = "" if tag.endswith(")") else label


def tagged_row(
    words: Sequence[str], tags: Sequence[str], meta: dict[str, str] | None = None, scheme: Scheme = BIO
) -> ProdigyRow:
    """Convert tokens and tags to Prodigy's row; the text is the tokens, joined by single spaces.

    Without spaces, if most characters are of a script without them, or tokens are characters, spaces among them, which
    may be empty.
    """
    text = "".join(words)
    characters = not all(map(str.strip, words)) and all(len(word) < 2 for word in words)
    unspaced = characters or (not text.isascii() and 2 * len(UNSPACED.findall(text)) > len(text))
    between, words = ("", [word or " " for word in words]) if unspaced else (" ", words)
    starts = [0, *accumulate(len(word) + len(between) for word in words)]
    spans = [
        RawSpan(starts[start], starts[end] - len(between), label) for start, end, label in decode_tags(tags, scheme)
    ]
    return ProdigyRow(between.join(words), spans, is_binary=False, meta=meta)


def name_tags(tags: Iterable[Any], names: Sequence[str]) -> list[Any]:
    """Return tags, numbered ones by name."""
    return [names[tag] if is_integer(tag) and 0 <= tag < len(names) else tag for tag in tags]


def read_tagged(
    line: int, tokens: Any, tags: Any, names: Sequence[str] = (), scheme: Scheme | None = None
) -> Converted | Problem:
    """Convert a row of tokens and tags, by the names of numbered tags, and the file's notation or its own."""
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        return Problem(line, Reason.MALFORMED, "`tokens` isn't a list of strings")
    if not isinstance(tags, list) or len(tags) != len(tokens):
        return Problem(line, Reason.MALFORMED, f"`ner_tags` isn't a list of {len(tokens)} tags")
    named_tags = name_tags(tags, names)
    scheme = scheme or find_scheme(Counter(tag for tag in named_tags if isinstance(tag, str)))
    nameless = [tag for tag in named_tags if not isinstance(tag, str) or (tag.isdigit() and tag not in scheme.outside)]
    if nameless:
        why = f"the tag {nameless[0]!r} has no name; write the tags' names, or Parquet with them"
        return Problem(line, Reason.MALFORMED, why)
    begun = sum(prefix in "BUSW" for tag in named_tags for prefix, _ in split_tag(tag, scheme))
    return Converted(tagged_row(tokens, named_tags, scheme=scheme), there=begun, what="tags that begin a span")


def decode_tags(tags: Iterable[str], scheme: Scheme = BIO) -> Iterator[tuple[int, int, str]]:
    """Yield the spans of tags, in tokens, sorted by end.

    >>> list(decode_tags(["I-PER", "I-PER", "B-PER", "O", "U-LOC", "ORG"]))
    [(0, 2, 'PER'), (2, 3, 'PER'), (4, 5, 'LOC'), (5, 6, 'ORG')]
    """
    if scheme.spelled is BRACKETED:
        tags, scheme = plain_brackets(tags), BIO
    starts: dict[tuple[str, int], int] = {}  # of open spans, by label and its number among equal labels of a token
    for place, tag in enumerate([*tags, "O"]):
        seen: Counter[str] = Counter()
        prefix_of: dict[tuple[str, int], str] = {}
        for prefix, label in split_tag(tag, scheme):
            prefix_of[label, seen[label]] = prefix
            seen[label] += 1
        for key in [key for key in starts if prefix_of.get(key, "B") in "BUSW"]:
            yield starts.pop(key), place, key[0]
        for key, prefix in prefix_of.items():
            starts.setdefault(key, place)
            if prefix in "LEUSW":
                yield starts.pop(key), place + 1, key[0]
