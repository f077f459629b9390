"""Read CoNLL files: a token and its tag per line, a blank line after each sentence, which becomes a text.

    -DOCSTART- -X- -X- O

    U.N. NNP I-NP I-ORG
    official NN I-NP O
    Ekeus NNP I-NP I-PER

Columns are separated by tabs, if a line has any, or else by spaces; all rows of a sentence have the same number. A line
may also be a `token|tag`, a whole sentence of these, or a sentence and its tags, with a tab between them.
`conll_layout` finds the columns of token and tag; `tags` reads the tags. A line that begins with # is a comment, unless
it has a token's columns. -DOCSTART-, and comments that name a document or a sentence, begin a text without a blank
line, too. Lines numbered 1-2 or 4.1 in CoNLL-U repeat words, or aren't in the text.

The text is the tokens with one space between them. If a file has several -DOCSTART-, `meta.doc` is the document's
number, or else its name in a comment; `split_by: doc` keeps its sentences in one split.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import TextIO

from labelwise.annotations import DOCUMENT, Item, Problem, Reason
from labelwise.sources.conll_layout import (
    HEAD,
    MIN_SHARE,
    WHITE,
    Layout,
    Shape,
    cells_of,
    find_layout,
    is_marked,
    is_start,
    shape_of,
)
from labelwise.sources.prodigy_row import task_of
from labelwise.sources.tags import OUTSIDE, PREFIXED, Scheme, find_scheme, split_tag, tagged_row

# Such as `# sent_id = 3`, `# id 5b4a domain=train`, `#begin document (a); part 000`, or `###MEDLINE:95369245`.
COMMENT = re.compile(r"#\s*\S+\s*=.*|#\s*|#(?:begin|end) document.*|#\s.*|###\S.*")
# Of CoNLL-U, CoNLL-2012, and HIPE-2022.
DOCUMENT_NAME = re.compile(r"#\s*newdoc id\s*=\s*(.+)|#begin document \((.+)\).*|#\s*(?:\w+:)?document_id\s*=\s*(.+)")
SENTENCE_NAME = re.compile(r"#\s*sent_id\s*=.*")
REPEATED = re.compile(r"[0-9]+[-.][0-9]+")  # the number of several words, or of an empty node, in CoNLL-U
NOT_UTF8 = re.compile("[\udc80-\udcff]")  # bytes, as `surrogateescape` decodes them
MAX_TAGS = 10_000  # different ones
MISSING = ("nan", "NaN", "NA", "NULL", "None")  # in tables of pandas and R
NumberedRow = tuple[int, list[str]]  # the number of a line, and its columns


def read_conll(path: Path) -> Iterator[Item]:
    """Yield the sentences of a file as tasks; a sentence with an unreadable line is a problem."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        numbered = _lines(file)
        head = list(islice(numbered, HEAD))
        layout = find_layout(path, [line for _, line in head])
        tags, starts = _count_tags(chain(head, numbered), layout)
        # Where O is outside, or nothing else is there, `_` says nothing: HIPE's.
        scheme, untagged = find_scheme(tags), "_" if "O" in tags or {*tags} == {"_"} else ""
        file.seek(0)
        documents, document = 0, ""
        for lines in _blocks(_lines(file), layout):
            shape = next((shape_of(line) for _, line in lines if not is_marked(line)), layout.shape)
            rows: list[NumberedRow] = []
            tabbed: set[bool] = set()
            problem = None
            for number, line in lines:
                if NOT_UTF8.search(line):
                    problem = problem or Problem(number, Reason.MALFORMED, "not UTF-8; save the file as UTF-8")
                elif is_start(line):
                    documents += 1
                    document = str(documents) if starts > 1 else ""  # Label Studio's begin with one
                elif _is_comment(line, shape, layout.tag):
                    match = DOCUMENT_NAME.fullmatch(line)
                    document = match[match.lastindex or 0].strip() if match else document
                elif cells_of(line) != layout.names:
                    rows.append((number, cells_of(line)))
                    tabbed.add("\t" in line)
                    if len(tabbed) > 1:
                        problem = problem or Problem(
                            number, Reason.MALFORMED, "tabs separate only some columns; use them for all"
                        )
            if problem or rows:
                yield problem or _read_sentence(rows, layout, document, scheme, untagged)


def _count_tags(numbered: Iterable[tuple[int, str]], layout: Layout) -> tuple[Counter[str], int]:
    """Count the tokens of each tag, and -DOCSTART-; with too many tags, in the lines so far."""
    tags: Counter[str] = Counter()
    starts = 0
    for _, line in numbered:
        starts += is_start(line)
        cells = cells_of(line) if not is_marked(line) and line.strip(WHITE) else []
        if len(cells) > max(layout.tag, 1) and cells != layout.names:
            tags[cells[layout.tag].strip()] += 1
        if len(tags) > MAX_TAGS:
            break
    return tags, starts


def _blocks(numbered: Iterable[tuple[int, str]], layout: Layout) -> Iterator[list[tuple[int, str]]]:
    block: list[tuple[int, str]] = []
    last = ""
    for number, line in numbered:
        blank = not line.strip(WHITE)
        cells = cells_of(line) if layout.sentence >= 0 and not blank else []
        value = cells[layout.sentence].strip() if len(cells) > max(layout.sentence, 0) else ""
        value = "" if value in MISSING else value
        if (blank or value not in ("", last) or _begins(line)) and block:
            yield block
            block = []
        last = value or last
        if not blank:
            block.append((number, line))
    if block:
        yield block


def _begins(line: str) -> bool:
    """Return whether a line begins a document or a sentence."""
    if not is_marked(line):
        return False
    return is_start(line) or bool(DOCUMENT_NAME.fullmatch(line) or SENTENCE_NAME.fullmatch(line))


def _lines(file: TextIO) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers, without line ends (LF, CR, CRLF).

    A line of `token|tag token|tag`, or of a sentence and its tags, becomes a line per token, and a blank one; a single
    `token|tag` is a line. The columns B and PER, as spaCy's `ent_iob_` and `ent_type_`, become B-PER.
    """
    # WebAnno TSV 2 begins with " # "; joined files may each begin with a byte order mark.
    lines = (line.removesuffix("\n").lstrip(" \ufeff") for line in file)
    head = list(islice(lines, HEAD))
    rows = [line for line in head if line.strip(WHITE) and not is_marked(line)]
    marked = [line.split() for line in rows]
    piped = bool(marked) and all("|" in pair[1:] for pairs in marked for pair in pairs)
    sentences = any(len(pairs) > 1 for pairs in marked) if piped else _are_sentences(rows)
    widths = {len(cells) if cells[1:] == ["O"] or {*cells[1:2]} <= {*"BILUES"} else 0 for cells in map(cells_of, rows)}
    apart = widths == {2, 3}
    for number, line in enumerate(chain(head, lines), 1):
        if not (piped or sentences) or is_marked(line):
            cells = cells_of(line) if apart else []
            yield number, "\t".join((cells[0], "-".join(cells[1:]))) if cells[1:] else line
            continue
        if piped:
            pairs = [pair.rsplit("|", marked[0][0].count("|")) for pair in line.split()]
        else:
            pairs = [[*pair] for pair in zip_longest(*map(str.split, line.split("\t")[:2]), fillvalue="")]
        for pair in pairs:
            yield number, "\t".join(pair)
        if sentences or not line.strip(WHITE):
            yield number, ""


def _are_sentences(rows: Sequence[str]) -> bool:
    """Return whether lines are a sentence, a tab, and the same number of tags."""
    cells = [[cell.split() for cell in line.split("\t")[:2]] for line in rows]
    complete = [row for row in cells if len(row) == 2 and len(row[0]) == len(row[1])]
    longer = [row for row in complete if len(row[1]) > 1]
    return 2 * len(longer) > len(cells) and len(complete) >= MIN_SHARE * len(cells)


def _is_comment(line: str, shape: Shape | None, tag: int) -> bool:
    """Return whether a line is a comment, without a token's columns and a tag."""
    if not COMMENT.fullmatch(line):
        return False
    cells = cells_of(line)
    if len(cells) < 2 or len(cells) <= tag or shape not in (None, shape_of(line)):
        return True
    label = cells[tag].strip()
    return label not in OUTSIDE and not PREFIXED.fullmatch(label)


def _read_sentence(rows: Sequence[NumberedRow], layout: Layout, document: str, scheme: Scheme, untagged: str) -> Item:
    """Convert a sentence to a task; `untagged` is the tag of untagged tokens, if any."""
    columns = layout.token, layout.tag
    if layout.token and any(cells[0].isdigit() for _, cells in rows):
        repeated = [(number, cells) for number, cells in rows if REPEATED.fullmatch(cells[0])]
        for number, cells in repeated:
            if len(cells) > max(columns) and split_tag(cells[layout.tag].strip(), scheme):
                return Problem(number, Reason.MALFORMED, f"{cells[0]} has a tag; tag the words that it stands for")
        rows = [row for row in rows if row not in repeated]
    for number, cells in rows:
        if len(cells) < 2 or len(cells) <= max(columns):
            return Problem(number, Reason.MALFORMED, "no tag; a line has a token and its tag")
        if len(cells) != len(rows[0][1]):
            first = f"the sentence's first line has {len(rows[0][1])}"
            return Problem(number, Reason.MALFORMED, f"{len(cells)} columns, where {first}")
    words, tags = ([cells[place].strip() for _, cells in rows] for place in columns)
    if untagged and {*tags} == {untagged}:
        return Problem(rows[0][0], Reason.NOT_ANNOTATED, f"its tags are all {untagged}")
    return task_of(rows[0][0], tagged_row(words, tags, {DOCUMENT: document} if document else None, scheme))
