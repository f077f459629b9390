"""Find the rows and spans of a file's line, a document, or words, in the tables of a merge.

1. A place or the name of a document is looked up in the tables. A user writes a path, and the tables have it as its
   entry in `datasets.yml` does: one has to end with the other.
2. Words are looked up in the texts of the corpus, and in the spans of the texts that aren't in it.
3. If these have none, words are looked up in the sources that `datasets.yml` declares.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from labelwise.annotations import Task
from labelwise.base.errors import InputError
from labelwise.base.text import text_key
from labelwise.corpus.manifest import read_manifest
from labelwise.corpus.tables import Group, read_groups
from labelwise.corpus.texts import find_doc, read_groups_with_docs
from labelwise.datasets.declarations import load_datasets
from labelwise.sources.brat import SUFFIXES
from labelwise.sources.formats import read_items
from labelwise.why.account import Account, Row

LOCATED = re.compile(r"(.+):([0-9]+)")


def find(corpus: Path, asked: str, declarations: Sequence[Path]) -> Iterator[Account]:
    """Yield the found texts.

    asked (str): file, with or without a line, document name, or words.
    declarations (Sequence[Path]): `datasets.yml` files, or folders with one.
    RAISES (InputError): if nothing is found, or there is no corpus.
    """
    read_manifest(corpus, stopped=True)
    for way in (find_places(corpus, asked), _find_words_anywhere(corpus, asked, declarations)):
        any_found = False
        for account in way:
            any_found = True
            yield account
        if any_found:
            return
    raise InputError(_not_found(corpus, asked, declarations))


def find_places(corpus: Path, asked: str) -> Iterator[Account]:
    """Yield the texts at a place, or in a document."""
    file, line = _split(asked)
    for group in read_groups(corpus, stopped=True):
        rows, spans = (_at(table, file, line) for table in (group.rows, group.spans))
        documents = _named(group.texts, "doc", file) if line is None else group.texts.slice(0, 0)
        whole = {*documents["text"].to_pylist()}
        keys = {key for table in (rows, spans, documents) for key in pc.unique(table["text"]).drop_null().to_pylist()}
        for account in _accounts(group, keys):
            yield _choose_place(_look(account, corpus), file, line, whole=account.key in whole)
        for row in rows.filter(pc.is_null(rows["text"])).to_pylist():
            yield Account(None, "", None, [row], [], [0], [])
        for span in spans.filter(pc.is_null(spans["text"])).to_pylist():
            yield Account(None, "", None, [], [span], [], [0])


def _find_words_anywhere(corpus: Path, asked: str, declarations: Sequence[Path]) -> Iterator[Account]:
    keys = set()
    for account in _find_words(corpus, asked):
        keys.add(account.key)
        yield account
    yield from (one for one in _find_in_sources(corpus, asked, declarations) if one.key not in keys)


def _find_words(corpus: Path, asked: str) -> Iterator[Account]:
    pattern = _pattern(asked)
    for group, docs in read_groups_with_docs(corpus, stopped=True):
        docs_with_words = {key: doc for key, doc in docs if pattern.search(doc.text)}
        words = group.spans.filter(pc.is_valid(group.spans["words"]))
        words = words.filter(pc.match_substring_regex(words["words"], _spell(asked, _escape)))
        outside = group.texts.filter(pc.is_null(group.texts["split"]))["text"]
        keys = {*docs_with_words, *words.filter(pc.is_in(words["text"], outside))["text"].to_pylist()}
        for account in _accounts(group, keys):
            doc = docs_with_words.get(account.key)
            yield _choose_words(account._replace(doc=doc, shown=doc.text if doc else ""), pattern)


def _find_in_sources(corpus: Path, asked: str, declarations: Sequence[Path]) -> Iterator[Account]:
    pattern, texts = _pattern(asked), dict[str, str]()
    for dataset in load_datasets(declarations) if declarations else ():
        for file in dataset.files:
            for item in read_items(file.path, dataset.database, dataset.key, dataset.offsets):
                if isinstance(item, Task) and pattern.search(item.text):
                    texts[text_key(item.text).hex()] = item.text
    for group in read_groups(corpus, stopped=True) if texts else ():
        columns = (group.texts[name].to_pylist() for name in ("text", "same"))
        found = {text: [one for one in (text, *same) if one in texts] for text, same in zip(*columns, strict=True)}
        for account in _accounts(group, {text for text, ones in found.items() if ones}):
            yield _choose_words(account._replace(shown=texts[found[account.key][0]]), pattern)


def find_texts(corpus: Path, keys: Collection[str]) -> Iterator[Account]:
    """Yield the texts with these keys, without Docs."""
    for group in read_groups(corpus):
        yield from _accounts(group, keys)


def find_shown(corpus: Path, asked: str) -> list[str]:
    """Return the texts at a place, or in a document; other words are a text.

    RAISES (InputError): if a place has nothing, or only texts outside the corpus.
    """
    accounts = [*find_places(corpus, asked)]
    if accounts and not any(account.shown for account in accounts):
        raise InputError(f"{asked}: its text isn't in {corpus}; give the text itself, in quotes")
    if not accounts and _split(asked)[1] is not None and not re.search(r"\s", asked):
        raise InputError(_not_found(corpus, asked, ()))
    return [account.shown for account in accounts if account.shown] or [asked]


def _accounts(group: Group, keys: Collection[str]) -> Iterator[Account]:
    if not keys:
        return
    key_array = pa.array(sorted(keys), pa.string())
    texts, rows, spans = (table.filter(pc.is_in(table["text"], key_array)).to_pylist() for table in group)
    by_text = [{key: [*found] for key, found in groupby(table, lambda row: row["text"])} for table in (rows, spans)]
    for text in texts:
        own_rows, own_spans = (table.get(text["text"], []) for table in by_text)
        yield Account(text, "", None, own_rows, own_spans, (), ())


def _look(account: Account, corpus: Path) -> Account:
    text = account.text
    doc = find_doc(corpus, text["split"], text["text"]) if text and text["split"] else None
    return account._replace(doc=doc, shown=doc.text if doc else "")


def _choose_place(account: Account, file: str, line: int | None, *, whole: bool) -> Account:
    """Choose the rows and spans at a place, with the spans of these rows; or all."""

    def wanted(row: Row) -> bool:
        return whole or (_is_named(row["file"], file) and line in (None, row["line"]))

    rows = [n for n, row in enumerate(account.rows) if wanted(row)]
    numbers = {account.rows[n]["row"] for n in rows}
    spans = [n for n, span in enumerate(account.spans) if wanted(span) or span["row"] in numbers]
    return account._replace(wanted_rows=rows, wanted_spans=spans)


def _choose_words(account: Account, pattern: re.Pattern[str]) -> Account:
    """Choose all rows, and the spans that have some of the words, or whose offsets couldn't be read."""
    inside = [match.span() for match in pattern.finditer(account.shown)]

    def wanted(span: Row) -> bool:
        if span["start"] is None or not account.shown:
            return span["start"] is None or bool(pattern.search(span["words"] or ""))
        return any(start < span["end"] and span["start"] < end for start, end in inside)

    spans = [n for n, span in enumerate(account.spans) if wanted(span)]
    return account._replace(wanted_rows=range(len(account.rows)), wanted_spans=spans)


def _split(asked: str) -> tuple[str, int | None]:
    located = LOCATED.fullmatch(asked)
    file, line = (located[1], int(located[2])) if located else (asked, None)
    return file.removeprefix("./"), line


def _is_named(name: str, asked: str) -> bool:
    """Return whether one of a written path and a declared file name ends with the other.

    >>> _is_named("org.jsonl", "assets/prodigy/org.jsonl"), _is_named("assets/org.jsonl", "org.jsonl")
    (True, True)
    >>> _is_named("org.jsonl", "my-org.jsonl")
    False
    """
    one, other = sorted((name, asked), key=len)
    return one == other or other.endswith(f"/{one}")


def _named(table: pa.Table, column: str, asked: str) -> pa.Table:
    names = [name for name in pc.unique(table[column]).drop_null().to_pylist() if _is_named(name, asked)]
    return table.filter(pc.is_in(table[column], pa.array(names, pa.string())))


def _at(table: pa.Table, file: str, line: int | None) -> pa.Table:
    rows = _named(table, "file", file)
    return rows if line is None else rows.filter(pc.equal(rows["line"], line))


def _pattern(asked: str) -> re.Pattern[str]:
    """Make a pattern for words, with any white space between them and any composition."""
    return re.compile(_spell(asked, re.escape))


def _spell(asked: str, escape: Callable[[str], str]) -> str:
    words = unicodedata.normalize("NFC", asked).split()
    return r"\s+".join("".join(_compositions(char, escape) for char in word) for word in words)


def _compositions(char: str, escape: Callable[[str], str]) -> str:
    parts = unicodedata.normalize("NFD", char)
    variants = dict.fromkeys(unicodedata.normalize("NFC", parts[:n]) + parts[n:] for n in range(1, len(parts) + 1))
    return f"(?:{'|'.join(map(escape, variants))})" if len(variants) > 1 else escape(char)


def _escape(word: str) -> str:
    """Escape a word for Arrow's regular expressions, whose syntax isn't Python's."""
    return "".join(char if char.isalnum() else f"\\x{{{ord(char):x}}}" for char in word)


def _not_found(corpus: Path, asked: str, declarations: Sequence[Path]) -> str:
    declared = ", ".join(map(str, declarations))
    sources = f"the sources that {declared} declare" if declared else "no source, as none is declared: give --datasets"
    where = f"the files, documents and texts of {corpus}, and {sources}"
    remedy = "give a path as datasets.yml has it, with a line, a document's name, or words as they are in the text"
    file, line = _split(asked)
    if line is not None and (before := _last_line(corpus, file, line)):
        brat = "only lines that begin with T are spans"
        table = "a sentence of a table is at the line of its first token"
        return (
            f"{asked}: {corpus} has nothing at that line; the last row or span before it is at line {before}; "
            f"{brat if file.lower().endswith(SUFFIXES) else table}"
        )
    return f"{asked!r}: not found in {where}; {remedy}; if it is new, run the merge"


def _last_line(corpus: Path, file: str, before: int) -> int:
    lines = (
        pc.max(rows.filter(pc.less(rows["line"], before))["line"]).as_py() or 0
        for group in read_groups(corpus, stopped=True)
        for rows in (_at(group.rows, file, None), _at(group.spans, file, None))
    )
    return max(lines, default=0)
