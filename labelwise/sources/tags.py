"""Turn tokens and tags into tasks.

Tags are read as by conlleval (https://www.clips.uantwerpen.be/conll2002/ner/bin/conlleval.txt), in BIO (also called
IOB2), IOB1, BILOU (BILUO, BIOES, IOBES), or as labels alone: B, U and S begin a span, and so does any tag after another
label or outside; L, E, U and S end it. If all tags are B and I without a label, theirs is NO_LABEL, which stands for
the one that their data set declares.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from labelwise.annotations import Problem, Reason
from labelwise.base.text import is_integer
from labelwise.sources.clean import RawSpan
from labelwise.sources.prodigy_row import Converted, ProdigyRow

TOKENS, TAGS = ("tokens", "words"), ("ner_tags", "ner", "tags", "labels")  # their keys in rows, and columns
PREFIXED = re.compile(r"([BIUSLE])-(.+)", re.DOTALL)
BEGINS = re.compile(r"[BUS]-.", re.DOTALL)  # a tag that begins a span, after any other
OUTSIDE = ("O", "_", "-", "")
NO_LABEL = "(no label)"


def tagged_row(words: Sequence[str], tags: Sequence[str], meta: dict[str, str] | None = None) -> ProdigyRow:
    """Convert tokens, with one space between them in the text, and their tags to Prodigy's row."""
    starts = [0, *accumulate(len(word) + 1 for word in words)]
    spans = [RawSpan(starts[start], starts[end] - 1, label) for start, end, label in decode_tags(tags)]
    return ProdigyRow(" ".join(words), spans, is_binary=False, meta=meta)


def read_tagged(line: int, tokens: Any, tags: Any, names: Sequence[str] = ()) -> Converted | Problem:
    """Convert a row of tokens and tags.

    names (Sequence[str]): of numbered tags.
    """
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        return Problem(line, Reason.MALFORMED, "`tokens` isn't a list of strings")
    if not isinstance(tags, list) or len(tags) != len(tokens):
        return Problem(line, Reason.MALFORMED, f"`ner_tags` isn't a list of {len(tokens)} tags")
    named = [names[tag] if is_integer(tag) and 0 <= tag < len(names) else tag for tag in tags]
    nameless = [tag for tag in named if not isinstance(tag, str) or tag.isdigit()]
    if nameless:
        why = f"the tag {nameless[0]!r} has no name; write the tags' names, or Parquet with them"
        return Problem(line, Reason.MALFORMED, why)
    begun = sum(bool(BEGINS.match(tag)) for tag in named)
    return Converted(tagged_row(tokens, give_label(named)), there=begun, what="tags that begin a span")


def give_label(tags: Sequence[str]) -> Sequence[str]:
    """Label B and I alone as NO_LABEL, if there are no other tags."""
    if not {"B"} <= {*tags} - {*OUTSIDE} <= {"B", "I"}:
        return tags
    return [tag if tag in OUTSIDE else f"{tag}-{NO_LABEL}" for tag in tags]


def decode_tags(tags: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the spans of tags, in tokens.

    >>> list(decode_tags(["I-PER", "I-PER", "B-PER", "O", "U-LOC", "ORG"]))
    [(0, 2, 'PER'), (2, 3, 'PER'), (4, 5, 'LOC'), (5, 6, 'ORG')]
    """
    start, within = 0, ""  # the label of the span that tokens are in
    for place, tag in enumerate([*tags, "O"]):
        found = PREFIXED.fullmatch(tag)
        prefix, label = (found[1], found[2]) if found else ("I", "" if tag in OUTSIDE else tag)
        if within and (label != within or prefix in "BUS"):
            yield start, place, within
            within = ""
        if label and not within:
            start, within = place, label
        if within and prefix in "LEUS":
            yield start, place + 1, within
            within = ""
