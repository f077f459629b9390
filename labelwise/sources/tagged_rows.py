"""Read rows of tokens with a tag each, the layout of named-entity data sets on the Hugging Face hub.

    {"id": "0", "tokens": ["EU", "rejects", "German"], "ner_tags": ["B-ORG", "O", "B-MISC"]}      (JSONL)

Tags of Parquet files may be numbers; the feature that the `datasets` library keeps with the schema names them
(https://huggingface.co/docs/datasets/about_dataset_features). JSONL has none. The text is the tokens with one space
between them; `conll` reads the tags.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from labelwise.base.errors import InputError
from labelwise.base.text import DECODE_ERRORS, is_integer
from labelwise.sources.conll import BEGINS, make_task
from labelwise.sources.items import Item, miscounted
from labelwise.sources.prodigy import Task

TOKENS, TAGS = ("tokens", "words"), ("ner_tags", "ner", "tags", "labels")
ROWS = 1000  # that are read from a Parquet file at a time


def tags_of(row: dict[str, Any]) -> list[Any] | None:
    """Return the tags of a row of JSONL that has tokens; None if it hasn't both."""
    tokens, tags = (_first(row, names) for names in (TOKENS, TAGS))
    if not isinstance(tokens, list) or not isinstance(tags, list):
        return None
    # Beside a text, lists may be something else, such as spans.
    kinds = (str, int) if "text" in row else object
    is_it = all(isinstance(token, str) for token in tokens) and all(isinstance(tag, kinds) for tag in tags)
    return tags if is_it else None


def parse_tagged(row: dict[str, Any]) -> tuple[Task | None, str]:
    """Make a task of a row of JSONL, or say why it can't be used; see `prodigy.parse_task`."""
    return make_named(_first(row, TOKENS), _first(row, TAGS), ())


def _first(row: dict[str, Any], names: Sequence[str]) -> Any:
    return next((row[name] for name in names if name in row), None)


def read_parquet(path: Path) -> Iterator[Item]:
    """Yield the rows of a Parquet file as tasks, in bounded memory.

    RAISES (InputError): the file isn't Parquet, or has no such columns.
    """
    import pyarrow  # only where there is such a file
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path)
        there = file.schema_arrow.names
        columns = [next((name for name in names if name in there), "") for names in (TOKENS, TAGS)]
        if not all(columns) or any(there.count(name) > 1 for name in columns):
            raise InputError(f"{path}: its columns are {', '.join(there)}; it needs one `tokens` and one `ner_tags`")
        names = tag_names(file.schema_arrow.metadata or {}, columns[1])
        number = 0
        for batch in file.iter_batches(ROWS, columns=columns):
            for tokens, tags in zip(*(batch.column(name).to_pylist() for name in columns), strict=True):
                number += 1
                yield Item(number, *make_named(tokens, tags, names))
        if number < file.metadata.num_rows:
            yield miscounted(number + 1, file.metadata.num_rows, "rows", number)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: it can't be read as Parquet ({error}); make it again") from error


def tag_names(metadata: dict[bytes, bytes], column: str) -> Sequence[str]:
    """Find the names of numbered tags in the feature that `datasets` keeps with a schema, if there is one."""
    try:
        feature = msgspec.json.decode(metadata.get(b"huggingface", b"{}"))["info"]["features"][column]
        names = feature.get("feature", feature).get("names", ())
        return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else ()
    except (*DECODE_ERRORS, LookupError, TypeError, AttributeError):
        return ()


def make_named(tokens: Any, tags: Any, names: Sequence[str]) -> tuple[Task | None, str]:
    """Make a task of tokens and tags, or say why they can't be used, or that it has fewer spans than tags begin."""
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        return None, "malformed: `tokens` isn't a list of strings"
    if not isinstance(tags, list) or len(tags) != len(tokens):
        return None, f"malformed: `ner_tags` isn't a list of {len(tokens)} tags"
    named = [names[tag] if is_integer(tag) and 0 <= tag < len(names) else tag for tag in tags]
    nameless = [tag for tag in named if not isinstance(tag, str) or tag.isdigit()]
    if nameless:
        return None, f"malformed: the tag {nameless[0]!r} has no name; write the tags' names, or Parquet with them"
    task, problem = make_task(tokens, named)
    begun = sum(bool(BEGINS.match(tag)) for tag in named)
    if task and begun > len(task.spans or ()):
        problem = miscounted(0, begun, "tags that begin a span", len(task.spans or ())).problem
    return task, problem
