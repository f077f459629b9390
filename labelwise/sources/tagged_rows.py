"""Read tokens and tags from Parquet, the layout of named-entity datasets on the Hugging Face hub.

Numbered tags are named by the feature that the `datasets` library stores with the schema
(https://huggingface.co/docs/datasets/about_dataset_features); JSONL has no such names. The text is the tokens with one
space between them; `tags` reads the tags.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from labelwise.annotations import Item, incomplete_read
from labelwise.base.errors import InputError
from labelwise.base.text import DECODE_ERRORS
from labelwise.sources.prodigy_row import tasks_of
from labelwise.sources.tags import TAGS, TOKENS, find_scheme, name_tags, read_tagged

ROWS = 1000  # per batch from a Parquet file


def read_parquet(path: Path) -> Iterator[Item]:
    """Yield the rows of a Parquet file as tasks, in bounded memory; refuse one without the columns."""
    import pyarrow  # only where there is such a file
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path)
        present = file.schema_arrow.names
        columns = [next((name for name in names if name in present), "") for names in (TOKENS, TAGS)]
        if not all(columns) or any(present.count(name) > 1 for name in columns):
            raise InputError(f"{path}: its columns are {', '.join(present)}; it needs one `tokens` and one `ner_tags`")
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
                yield from tasks_of(number, (read_tagged(number, tokens, tags, names, scheme),))
        if number < file.metadata.num_rows:
            yield incomplete_read(number + 1, file.metadata.num_rows, "rows", number)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: it can't be read as Parquet ({error}); make it again") from error


def tag_names(metadata: dict[bytes, bytes], column: str) -> Sequence[str]:
    """Return the names of numbered tags, from the `datasets` feature in a schema."""
    try:
        feature = msgspec.json.decode(metadata.get(b"huggingface", b"{}"))["info"]["features"][column]
        names = feature.get("feature", feature).get("names", ())
        return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else ()
    except (*DECODE_ERRORS, LookupError, TypeError, AttributeError):
        return ()
