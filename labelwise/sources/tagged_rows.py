"""Read rows of tokens and tags, the layout of named-entity data sets on the Hugging Face hub.

    {"id": "0", "tokens": ["EU", "rejects", "German"], "ner_tags": ["B-ORG", "O", "B-MISC"]}      (JSONL)

Tags of Parquet files may be numbers, which the feature names that the `datasets` library keeps with the schema
(https://huggingface.co/docs/datasets/about_dataset_features). JSONL has no such names. The text is the tokens with one
space between them; `tags` reads the tags.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from labelwise.annotations import Found, Problem, Reason, Task, miscounted
from labelwise.base.errors import InputError
from labelwise.base.text import DECODE_ERRORS, is_integer
from labelwise.sources.keys import TAGS, TOKENS
from labelwise.sources.tags import BEGINS, give_label, tagged_task

ROWS = 1000  # that are read from a Parquet file at a time


def read_parquet(path: Path) -> Iterator[Found]:
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
                yield from named_task(number, tokens, tags, names)
        if number < file.metadata.num_rows:
            yield miscounted(number + 1, file.metadata.num_rows, "rows", number)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: it can't be read as Parquet ({error}); make it again") from error


def tag_names(metadata: dict[bytes, bytes], column: str) -> Sequence[str]:
    """Return the names of numbered tags, from the feature that `datasets` keeps with a schema; none without it."""
    try:
        feature = msgspec.json.decode(metadata.get(b"huggingface", b"{}"))["info"]["features"][column]
        names = feature.get("feature", feature).get("names", ())
        return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else ()
    except (*DECODE_ERRORS, LookupError, TypeError, AttributeError):
        return ()


def named_task(line: int, tokens: Any, tags: Any, names: Sequence[str]) -> Sequence[Found]:
    """Make a task of tokens and tags, or a problem; a second problem says that tags begin more spans than were read.

    names (Sequence[str]): of numbered tags.
    """
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        return (Problem(line, Reason.MALFORMED, "`tokens` isn't a list of strings"),)
    if not isinstance(tags, list) or len(tags) != len(tokens):
        return (Problem(line, Reason.MALFORMED, f"`ner_tags` isn't a list of {len(tokens)} tags"),)
    named = [names[tag] if is_integer(tag) and 0 <= tag < len(names) else tag for tag in tags]
    nameless = [tag for tag in named if not isinstance(tag, str) or tag.isdigit()]
    if nameless:
        why = f"the tag {nameless[0]!r} has no name; write the tags' names, or Parquet with them"
        return (Problem(line, Reason.MALFORMED, why),)
    found = tagged_task(line, tokens, give_label(named))
    begun = sum(bool(BEGINS.match(tag)) for tag in named)
    read = len(found.all_spans) if isinstance(found, Task) else begun
    return (found,) if begun <= read else (found, miscounted(line, begun, "tags that begin a span", read))
