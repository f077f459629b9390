"""Find the columns of tokens and of tags in the first lines of a CoNLL file.

1. A comment such as `# global.columns = ID FORM NER` (CoNLL-U Plus: https://universaldependencies.org/ext-format.html),
   or a first line of names, such as `Word POS Tag`. In a column `Sentence #`, a value begins a sentence.
2. The only column with nothing but tags (see `tags`), other than chunks such as B-NP; of two that share labels, the
   first.
3. The last column, if it may have labels without B and I.

The token is in the first column that neither has the tags, nor numbers the tokens, nor repeats in all lines of a
sentence, as a document's name does, nor differs in all lines of the file, as an identifier does.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import NamedTuple

from labelwise.base.errors import InputError
from labelwise.sources.foreign import ROWS
from labelwise.sources.tags import (
    BRACKETED,
    FEATURE,
    OTHER_OUTSIDE,
    OUTSIDE,
    PREFIXED,
    UNHYPHENATED,
    Scheme,
    find_scheme,
    split_tag,
)

DOCUMENT_START = "-DOCSTART-"
WHITE = " \t\r\n\f\v"  # a line of nothing else is blank
HEAD = 1000  # lines that show a file's layout
NAMED_COLUMNS = re.compile(r"#\s*global\.columns\s*=\s*([^\t]+)")
TOKENS = ("FORM", "TOKEN", "TOKENS", "WORD", "WORDS", "TEXT")
TAGS = ("NE", "NER", "ENTITY", "ENTITIES", "IOB", "IOB2", "BIO", "TAG", "TAGS", "LABEL", "LABELS")  # the best first
QUOTED = re.compile(r'".+"')  # as R and sheets write words
DOUBLED = re.compile(r'"(?:[^"]|"")*""(?:[^"]|"")*"')  # as pandas and sheets write words with quotes
SPACES = re.compile("[ \t]+")
SENTENCE = re.compile("SENTENCE|SENT[_. -]?(?:ID|IDX|N|NO|NUM|#)")
WORD_ENDS = re.compile("[-_ .]+")
NUMBER = re.compile(r"([0-9]{1,9})(?:[-.]([0-9]{1,9}))?")  # of a token: 1, 2-3, 4.1, or 6-4 in the sixth sentence
MIN_SHARE = 0.9  # of a column's cells
MIN_WORDS = 10  # different ones in a column
MIN_TOKENS = 200  # of which one is there twice
MIN_SYNTAX = 10  # columns of syntax or semantic roles, as in CoNLL-X and CoNLL-2009; a label without B or I may be one
CHUNKS = {"NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP", "PC", "NC", "VC", "AC"}
Shape = tuple[bool, int]  # of a line: whether tabs separate its columns, and how many there are


class Layout(NamedTuple):
    """A file's layout, by its first lines.

    shape (Shape | None): of its first certain token, if any.
    names (list[str]): cells of a line of names, if any.
    sentence (int): column whose values begin sentences; -1 for none.
    """

    shape: Shape | None
    token: int = 0
    tag: int = -1
    names: list[str] = []
    sentence: int = -1


def cells_of(line: str) -> list[str]:
    """Split a line into columns, without one after a final tab, and without quotes that a table's writer added."""
    cells = line.split("\t") if "\t" in line else SPACES.split(line.strip(" "))
    cells = cells[:-1] if len(cells) > 2 and not cells[-1] else cells
    if '"' not in line:
        return cells
    quoted = QUOTED if all(QUOTED.fullmatch(cell) or cell.isdigit() for cell in cells) else DOUBLED
    unquoted = [cell[1:-1].replace('\\"', '"').replace('""', '"') for cell in cells]
    return [new if quoted.fullmatch(cell) else cell for cell, new in zip(cells, unquoted, strict=True)]


def shape_of(line: str) -> Shape:
    """Return whether tabs separate a line's columns, and their number."""
    return "\t" in line, len(cells_of(line))


def is_marked(line: str) -> bool:
    """Return whether a line may not be a token."""
    return line.startswith("#") or is_start(line)


def is_start(line: str) -> bool:
    """Return whether a line begins a document, in capitals or not."""
    return line[: len(DOCUMENT_START)].upper() == DOCUMENT_START


def find_layout(path: Path, head: Sequence[str]) -> Layout:
    """Find a file's layout by its first lines; refuse one without a clear column of tags."""
    tokens = [line for line in head if line.strip(WHITE) and not is_marked(line)]
    shape = shape_of(tokens[0]) if tokens else None
    column_names = next((match[1].split() for line in head if (match := NAMED_COLUMNS.fullmatch(line))), [])
    first = cells_of(tokens[0]) if tokens else []
    names = first if tokens and not column_names and _are_names(first) else []
    rows = [cells_of(line) for line in tokens[bool(names) :]]
    width = max(map(len, rows), key=Counter(map(len, rows)).__getitem__, default=0)
    columns = [
        [cell.strip() for cell in column] for column in zip(*(row for row in rows if len(row) == width), strict=True)
    ]
    sentences = _sentences(head)
    if columns:
        _check_shapes(path, width, sentences)
    tags = {place: scheme for place, column in enumerate(columns) if (scheme := _scheme_of(column))}
    _check_labels(path, columns)
    other = len(first) == width and not names and tags and all(_is_named(columns[place], tags[place]) for place in tags)
    unknown = first if other else []
    columns = [column[bool(unknown) :] for column in columns]
    if column_names or names:
        # R writes no name of its first column, the numbers of rows.
        numbered = names and len(names) == width - 1 and all(map(str.isdigit, columns[0]))
        named = column_names or [""] * bool(numbered) + names
        token, tag = _named_columns(named)
        sentence = next((place for place, name in enumerate(named) if SENTENCE.match(name.upper())), -1)
        layout = Layout(shape, token, tag, names or unknown, sentence)
    else:
        tag = _choose_column(path, columns, tags, named=bool(unknown))
        pairs = (pair for rows in sentences for pair in pairwise(rows))
        neighbors = [pair for pair in pairs if all(len(row) == width for row in pair)]
        token = _find_tokens(path, columns, {*tags, tag}, tag, neighbors)
        layout = Layout(shape, token, -1 if tag == width - 1 else tag, unknown)
    if width > max(layout.token, layout.tag, 0):
        _check_words(path, columns[layout.token], columns[layout.tag], sentences)
    return layout


def _sentences(head: Iterable[str]) -> list[list[list[str]]]:
    blocks = groupby(head, lambda line: not line.strip(WHITE))
    return [[cells_of(line) for line in block if not is_marked(line)] for blank, block in blocks if not blank]


def _check_shapes(path: Path, width: int, sentences: Sequence[Sequence[Sequence[str]]]) -> None:
    """Refuse lines of one column, and sentences with different numbers of columns."""
    equal = [len(one) == len(other) for rows in sentences for one, other in pairwise(rows)]
    why = "its lines have one column" if width == 1 else "the number of columns differs from line to line"
    if width == 1 or (len(equal) >= MIN_WORDS and 2 * sum(equal) < len(equal)):
        raise InputError(f"{path}: {why}; a line is a token and its tag, with a tab or a blank between them")


def _check_labels(path: Path, columns: Sequence[Sequence[str]]) -> None:
    """Refuse tables with a column of 0 and 1, or of B, I and O, for each label."""
    cells = [(column[0], {*column[1:]} - {column[0]}) for column in columns[1:]]
    names = [name for name, marks in cells if marks <= {"0", "1"} or marks <= {*"BIO"}]
    if 1 < len(names) == len(cells) and not any(name in "01BIO" or PREFIXED.fullmatch(name) for name in names):
        tags = f"write one of tags, such as B-{names[0]}, I-{names[0]} and O"
        raise InputError(f"{path}: it has a column for each label ({', '.join(names)}); {tags}")


def _check_words(
    path: Path, tokens: Sequence[str], tags: Sequence[str], sentences: Sequence[Sequence[Sequence[str]]]
) -> None:
    """Refuse tables whose rows are texts, spans or names instead of tokens, and numbers for tags."""
    if {*tags} - {"0"} and all(map(str.isdigit, tags)):
        raise InputError(f"{path}: its tags are numbers, such as {max(tags)}; write the tags' names in their place")
    texts = 2 * sum(" " in token for token in tokens) > len(tokens)
    tagged = any(tag in (*OUTSIDE, *OTHER_OUTSIDE) or PREFIXED.fullmatch(tag) for tag in tags)
    if texts or (len(sentences) == 1 and len(tokens) >= MIN_WORDS and not tagged):
        why = "most rows have several words" if texts else "no row is outside (O), and no blank line ends a sentence"
        raise InputError(f"{path}: {why}, so they aren't tokens of sentences; {ROWS}. The first is {tokens[0]!r}")


def _find_tokens(
    path: Path,
    columns: Sequence[Sequence[str]],
    tags: Iterable[int],
    tag: int,
    neighbors: Sequence[tuple[list[str], list[str]]],
) -> int:
    """Find the column of tokens; refuse one without letters if another column has words."""
    others = [place for place in range(len(columns)) if place not in tags]

    def share(place: int, fits: Callable[[str, str], bool]) -> float:
        return sum(fits(row[place], following[place]) for row, following in neighbors) / max(len(neighbors), 1)

    words = [place for place in others if len({*columns[place]}) < max(len(columns[place]), MIN_TOKENS)] or others
    tokens = [place for place in words if max(share(place, str.__eq__), share(place, _counts_on)) < MIN_SHARE]
    first = next(iter(tokens or others), 0)
    wordy = [place for place in tokens if _has_words(columns[place])]
    if wordy and first not in wordy:
        raise InputError(
            f"{path}: column {first + 1} has no words; name the columns in a first line, such as `# global.columns = "
            f"{_columns_line(len(columns), wordy[0], tag)}`. The columns are {_sample(columns)}"
        )
    return first


def _counts_on(one: str, other: str) -> bool:
    """Return whether two neighboring tokens have consecutive numbers; 1-2 may stand before its parts."""
    numbers = [
        [int(part) for part in match.groups() if part] for cell in (one, other) if (match := NUMBER.fullmatch(cell))
    ]
    return len(numbers) == 2 and any(after - before in (0, 1) for before in numbers[0] for after in numbers[1])


def _has_words(column: Sequence[str]) -> bool:
    letters = [cell for cell in column if any(map(str.isalpha, cell))]
    return 2 * len(letters) > len(column) and len({*letters}) >= MIN_WORDS


def _columns_line(width: int, token: int = 0, tag: int = -1) -> str:
    names = {tag % width: "NER", token: "FORM"}
    return " ".join(names.get(place, "_") for place in range(width))


def _sample(columns: Sequence[Sequence[str]]) -> str:
    return "; ".join(f"{n}: {', '.join([*dict.fromkeys(column)][:4])}" for n, column in enumerate(columns, 1))


def _are_names(cells: Sequence[str]) -> bool:
    """Return whether a line names columns, one of tags, and has no tag. "Tag" is German, too."""
    named = any(_rank(name) < len(TAGS) for name in cells[cells[-1].upper() not in TOKENS :])
    return named and not any(cell in OUTSIDE[:2] or PREFIXED.fullmatch(cell) for cell in cells)


def _is_named(column: Sequence[str], scheme: Scheme) -> bool:
    """Return whether a column of tags begins with neither a tag nor another's label: with a name in any language."""
    labels = {label for tag in column[1:] for _, label in split_tag(tag, scheme)}
    return column[0] not in scheme.outside | labels and not (scheme.spelled and scheme.spelled.fullmatch(column[0]))


def _rank(name: str) -> int:
    """Return a name's rank among names of tags, from 0; NE-COARSE-LIT and ner_tags count, too."""
    first = WORD_ENDS.split(name.upper().rpartition(":")[2].strip())[0]
    return TAGS.index(first) if first in TAGS else len(TAGS)


def _scheme_of(column: Sequence[str]) -> Scheme | None:
    """Return the scheme of a column's tags; None for chunks, other content, or no tag."""
    scheme = find_scheme(Counter(column))
    tags = [cell for cell in column if cell not in scheme.outside]
    labels = {label for cell in tags for _, label in split_tag(cell, scheme)}
    if not labels or not scheme.spelled or labels <= CHUNKS or (scheme.spelled is UNHYPHENATED and len({*tags}) < 2):
        return None
    if scheme.spelled in (FEATURE, BRACKETED):
        return scheme if all("=" in cell or BRACKETED.fullmatch(cell) for cell in tags) else None
    return scheme if sum(map(bool, map(scheme.spelled.fullmatch, tags))) >= MIN_SHARE * len(tags) else None


def _choose_column(path: Path, columns: Sequence[Sequence[str]], tags: Mapping[int, Scheme], *, named: bool) -> int:
    """Choose the column of tags, else the last column, if it may have labels alone; refuse others, or `named` ones."""
    labels = [{label for cell in columns[place] for _, label in split_tag(cell, tags[place])} for place in tags]
    shared = all(not named and any(label.startswith(tuple(labels[0])) for label in other) for other in labels[1:])
    if tags and (shared or any(scheme.spelled is BRACKETED for scheme in tags.values())):
        return next(iter(tags))
    last = {*columns[-1]} - {*OUTSIDE} if columns else set()
    odd = any(sign in cell for cell in last for sign in "=|(*") or len(last) > max(10, sum(map(len, columns[:1])) / 4)
    odd = (
        odd
        or len(columns) >= MIN_SYNTAX
        or (not last and any(cell[:1] == "(" and cell[-1:] == "*" for cell in chain(*columns)))
    )
    if not tags and not odd:
        return len(columns) - 1
    problem = f"columns {' and '.join(str(place + 1) for place in tags)} have tags" if tags else "no column has tags"
    raise InputError(
        f"{path}: {problem}, such as B-PER, I-PER and O; name the columns in a first line, such as `# global.columns = "
        f"{_columns_line(len(columns), int(0 in tags), next(iter(tags), -1))}`. The columns are {_sample(columns)}"
    )


def _named_columns(names: Sequence[str]) -> tuple[int, int]:
    """Find the columns of tokens and tags by name; by default the first and the last."""
    token = next((place for place, name in enumerate(names) if name.upper().rpartition(":")[2] in TOKENS), 0)
    ranks = [(_rank(name), place) for place, name in enumerate(names) if place != token]
    best, place = min(ranks, default=(len(TAGS), -1))
    return token, place if best < len(TAGS) else -1
