"""Read CoNLL files: a token and its tag on each line, a blank line after each sentence. A sentence becomes a text.

    -DOCSTART- -X- -X- O

    U.N. NNP I-NP I-ORG
    official NN I-NP O
    Ekeus NNP I-NP I-PER

Columns are separated by tabs, if a line has any, or else by spaces; all rows of a sentence have the same number. A
line may also be a `token|tag`, or a whole sentence of these. `conll_layout` finds the columns of the token and the tag;
`tags` reads the tags. A line that begins with # is a comment, unless its columns are those of a token.

Files don't have the text: it is the tokens with one space between them. After -DOCSTART-, `meta.doc` is the number of
the document, or else the name that a comment gives it; `split_by: doc` keeps its sentences in one split.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from labelwise.annotations import DOCUMENT, Found, Problem, Reason
from labelwise.sources.conll_layout import (
    BRACKETED,
    DOCUMENT_START,
    FEATURE,
    HEAD,
    PLAIN,
    WHITE,
    Layout,
    Shape,
    cells_of,
    find_layout,
    is_marked,
    label_of,
    shape_of,
)
from labelwise.sources.prodigy_row import task_of
from labelwise.sources.tags import NO_LABEL, OUTSIDE, PREFIXED, tagged_row

# Such as `# sent_id = 3`, `# id 5b4a domain=train`, or `#begin document (a); part 000`.
COMMENT = re.compile(r"#\s*\S+\s*=.*|#\s*|#(?:begin|end) document.*|#\s.*")
# Of CoNLL-U, CoNLL-2012, and HIPE-2022.
NAMED = re.compile(r"#\s*newdoc id\s*=\s*(.+)|#begin document \((.+)\).*|#\s*(?:\w+:)?document_id\s*=\s*(.+)")
NOT_UTF8 = re.compile("[\udc80-\udcff]")  # bytes, as `surrogateescape` decodes them
NumberedRow = tuple[int, list[str]]  # the number of a line, and its columns


def read_conll(path: Path) -> Iterator[Found]:
    """Yield the sentences of a file as tasks; a sentence with a line that can't be read is a problem of that line.

    RAISES (InputError): the column of tags can't be found.
    """
    numbered = _lines(path)
    head = list(islice(numbered, HEAD))
    layout = find_layout(path, [line for _, line in head])
    documents, document = 0, ""
    for lines in _blocks(chain(head, numbered), layout):
        shape = next((shape_of(line) for _, line in lines if not is_marked(line)), layout.shape)
        rows: list[NumberedRow] = []
        problem = None
        for number, line in lines:
            if NOT_UTF8.search(line):
                problem = problem or Problem(number, Reason.MALFORMED, "not UTF-8")
            elif line.startswith(DOCUMENT_START):
                documents += 1
                document = str(documents)
            elif _is_comment(line, shape, layout.tag):
                named = NAMED.fullmatch(line)
                document = named[named.lastindex or 0].strip() if named else document
            elif cells_of(line) != layout.names:
                rows.append((number, cells_of(line)))
        if problem or rows:
            yield problem or _read_sentence(rows, layout, document)


def _blocks(numbered: Iterable[tuple[int, str]], layout: Layout) -> Iterator[list[tuple[int, str]]]:
    """Yield the lines of each sentence, with their numbers."""
    block: list[tuple[int, str]] = []
    last = ""
    for number, line in numbered:
        blank = not line.strip(WHITE)
        cells = cells_of(line) if layout.sentence >= 0 and not blank else []
        value = cells[layout.sentence].strip() if len(cells) > max(layout.sentence, 0) else ""
        if (blank or value not in ("", last)) and block:
            yield block
            block = []
        last = value or last
        if not blank:
            block.append((number, line))
    if block:
        yield block


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers, without their ends: LF, CR, or CRLF.

    Of `token|tag token|tag`, each pair is a line, and a blank line follows; a single `token|tag` is a line.
    """
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        lines = (line.removesuffix("\n") for line in file)
        head = list(islice(lines, HEAD))
        marked = [line.split() for line in head if line.strip(WHITE) and not is_marked(line)]
        piped = bool(marked) and all("|" in pair[1:] for pairs in marked for pair in pairs)
        whole = piped and any(len(pairs) > 1 for pairs in marked)
        for number, line in enumerate(chain(head, lines), 1):
            if not piped or is_marked(line):
                yield number, line
                continue
            for pair in line.split():
                yield number, "\t".join(pair.rsplit("|", marked[0][0].count("|")))
            if whole or not line.strip(WHITE):
                yield number, ""


def _plain_tags(tags: Sequence[str], spelled: re.Pattern[str]) -> Iterator[str]:
    """Spell the tags of a sentence plainly: B-PER."""
    label = ""
    for tag in tags:
        found = spelled.fullmatch(tag)
        if spelled is BRACKETED:
            begun = label_of(tag, spelled)
            label = begun or label
            yield f"{'B' if begun else 'I'}-{label}" if label else "O"
            label = "" if tag.endswith(")") else label
        elif found:
            yield f"{found['prefix'].upper()}-{found['label'] or NO_LABEL}"
        else:
            yield "O" if spelled is FEATURE or tag == "o" else tag


def _is_comment(line: str, shape: Shape | None, tag: int) -> bool:
    """Return whether a line is a comment: it isn't if it has the columns of a token, with a tag.

    shape (Shape | None): that of the tokens; None if it isn't known.
    tag (int): the column of tags.
    """
    if not COMMENT.fullmatch(line):
        return False
    cells = cells_of(line)
    if len(cells) < 2 or len(cells) <= tag or shape not in (None, shape_of(line)):
        return True
    label = cells[tag].strip()
    return label not in OUTSIDE and not PREFIXED.fullmatch(label)


def _read_sentence(rows: Sequence[NumberedRow], layout: Layout, document: str) -> Found:
    """Convert a sentence to a task, whose line is that of its first token."""
    columns = layout.token, layout.tag
    for number, cells in rows:
        if len(cells) < 2 or len(cells) <= max(columns):
            return Problem(number, Reason.MALFORMED, "no tag; a line has a token and its tag")
        if len(cells) != len(rows[0][1]):
            first = f"the sentence's first line has {len(rows[0][1])}"
            return Problem(number, Reason.MALFORMED, f"{len(cells)} columns, where {first}")
    words, tags = ([cells[place].strip() for _, cells in rows] for place in columns)
    if layout.untagged and {*tags} == {layout.untagged}:
        return Problem(rows[0][0], Reason.NOT_ANNOTATED, f"its tags are all {layout.untagged}, and others are O")
    tags = tags if layout.spelled is PLAIN else [*_plain_tags(tags, layout.spelled)]
    return task_of(rows[0][0], tagged_row(words, tags, {DOCUMENT: document} if document else None))
