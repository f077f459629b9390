"""Read rows of tokens and tags, the layout of named-entity data sets on the Hugging Face hub.

    {"id": "0", "tokens": ["EU", "rejects", "German"], "ner_tags": ["B-ORG", "O", "B-MISC"]}      (JSONL)

Tags of Parquet files may be numbers, which the feature names that the `datasets` library keeps with the schema
(https://huggingface.co/docs/datasets/about_dataset_features). JSONL has no such names. The text is the tokens with one
space between them; `tags` reads the tags.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from labelwise.annotations import Found, Problem, Reason, Task, miscounted
from labelwise.base.errors import InputError
from labelwise.base.text import DECODE_ERRORS, is_integer
from labelwise.sources.keys import TAGS, TOKENS
from labelwise.sources.tags import Scheme, find_scheme, split_tag, tagged_task

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
        counts: Counter[str] = Counter()
        for batch in file.iter_batches(ROWS, columns=columns[1:]):
            for tags in batch.column(columns[1]).to_pylist():
                counts.update(tag for tag in name_tags(tags or (), names) if isinstance(tag, str))
        scheme = find_scheme(counts)
        number = 0
        for batch in file.iter_batches(ROWS, columns=columns):
            for tokens, tags in zip(*(batch.column(name).to_pylist() for name in columns), strict=True):
                number += 1
                yield from named_task(number, tokens, tags, names, scheme)
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


def name_tags(tags: Iterable[Any], names: Sequence[str]) -> list[Any]:
    """Return tags, with names in place of numbers that have one."""
    return [names[tag] if is_integer(tag) and 0 <= tag < len(names) else tag for tag in tags]


def named_task(
    line: int, tokens: Any, tags: Any, names: Sequence[str], scheme: Scheme | None = None
) -> Sequence[Found]:
    """Make a task of tokens and tags, or a problem; a second problem says that tags begin more spans than were read.

    names (Sequence[str]): of numbered tags.
    scheme (Scheme | None): that of the file; None for what the row's tags show.
    """
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        return (Problem(line, Reason.MALFORMED, "`tokens` isn't a list of strings"),)
    if not isinstance(tags, list) or len(tags) != len(tokens):
        return (Problem(line, Reason.MALFORMED, f"`ner_tags` isn't a list of {len(tokens)} tags"),)
    named = name_tags(tags, names)
    scheme = scheme or find_scheme(Counter(tag for tag in named if isinstance(tag, str)))
    nameless = [tag for tag in named if not isinstance(tag, str) or (tag.isdigit() and tag not in scheme.outside)]
    if nameless:
        why = f"the tag {nameless[0]!r} has no name; write the tags' names, or Parquet with them"
        return (Problem(line, Reason.MALFORMED, why),)
    found = tagged_task(line, tokens, named, scheme=scheme)
    begun = sum(prefix in "BUSW" for tag in named for prefix, _ in split_tag(tag, scheme))
    read = len(found.all_spans) if isinstance(found, Task) else begun
    return (found,) if begun <= read else (found, miscounted(line, begun, "tags that begin a span", read))
