"""What is exported: a merged corpus, predictions, or tasks; which of these is found out, and with which labels."""

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

from labelwise.common.errors import InputError
from labelwise.corpus.manifest import SPLITS, is_corpus
from labelwise.export.docs import ExportDoc, read_complete, read_corpus, read_labels, read_predicted
from labelwise.export.tasks import is_tasks, read_tasks


@dataclass
class Source:
    """What is exported.

    read (Callable): yields the texts; it may be called several times.
    labels (list[str]): sorted.
    version (str): names what predictions are from, and changes with it.
    texts (int): how many there are.
    predicted (bool): a pipeline found the spans.
    certain (bool): they have probabilities.
    looks (bool): the texts say what to look at.
    """

    read: Callable[[], Iterator[ExportDoc]]
    labels: list[str]
    version: str
    texts: int = 0
    predicted: bool = False
    certain: bool = False
    looks: bool = False


def open_source(path: Path, splits: Sequence[str] = SPLITS, annotated: Path | None = None) -> Source:
    """Find out what there is to export, and which labels it has; it is read for that.

    path (Path): the folder of a merged corpus, a file of predictions, or one of tasks.
    splits, annotated: see `run.export`.
    RAISES (InputError): it is none of these; `annotated` is no corpus.
    """
    corpus = is_corpus(path)
    if not corpus and not path.is_file():
        raise InputError(f"{path}: neither a merged corpus nor a file of predictions or tasks")
    if corpus:
        read_all = partial(read_corpus, path, splits)
    else:
        read_all = partial(read_tasks if is_tasks(path) else read_predicted, path)
    complete = read_complete(annotated) if annotated else {}

    def read() -> Iterator[ExportDoc]:
        """Yield the texts."""
        for doc in read_all():
            known = complete.get(doc.key)
            yield doc._replace(unknown={k: v for k, v in doc.unknown.items() if k not in known}) if known else doc

    source = Source(read, read_labels(path) if corpus else [], "" if corpus else _version(path))
    labels = set(source.labels)
    for doc in read_all():
        labels |= {*doc.shown, *(label for _, _, label in doc.spans)}
        source.texts += 1
        source.predicted |= doc.predicted
        source.certain |= bool(doc.scores)
        source.looks |= bool(doc.look)
    source.labels = sorted(labels)
    return source


def _version(path: Path) -> str:
    """Name a file's content: its name, and a digest."""
    with path.open("rb") as file:
        return f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()[:16]}"


def highest_first(lines: Iterable[tuple[float, bytes]]) -> Iterator[bytes]:
    """Yield lines by their numbers, the highest first, equal ones in their order; they are on disk meanwhile."""
    numbers, sizes = array("d"), array("q")
    with TemporaryFile() as file:
        for number, line in lines:
            numbers.append(number)
            sizes.append(file.write(line))
        starts = np.cumsum(sizes) - sizes
        for place in np.argsort(-np.array(numbers), kind="stable"):
            file.seek(starts[place])
            yield file.read(sizes[place])
