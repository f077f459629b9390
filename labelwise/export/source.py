"""What is exported: a merged corpus, predictions, or tasks; which of these is found out, and with which labels."""

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

from labelwise.corpus.manifest import SPLITS, is_corpus
from labelwise.corpus.tasks import DATASETS
from labelwise.errors import InputError
from labelwise.export.docs import ExportDoc, read_complete, read_corpus, read_labels, read_predicted
from labelwise.export.tasks import is_tasks, read_declared, read_tasks
from labelwise.sources.declarations import all_labels, load_datasets


@dataclass
class Source:
    """What is exported.

    read (Callable): yields the texts; it may be called several times.
    labels (list[str]): sorted; those of a folder of tasks as its `datasets.yml` has them.
    version (str): names what predictions are from, and changes with it.
    texts (int): how many there are.
    predicted (bool): a pipeline found the spans.
    certain (bool): they have probabilities.
    """

    read: Callable[[], Iterator[ExportDoc]]
    labels: list[str]
    version: str
    texts: int = 0
    predicted: bool = False
    certain: bool = False


def open_source(path: Path, splits: Sequence[str] = SPLITS, annotated: Path | None = None) -> Source:
    """Find out what there is to export, and which labels it has; it is read for that.

    path (Path): the folder of a merged corpus, one of tasks, as `convert-brat` writes it, a file of predictions, or one
        of tasks.
    splits, annotated: see `run.export`.
    RAISES (InputError): it is none of these; `annotated` is no corpus.
    """
    labels: list[str] = []
    if is_corpus(path):
        labels = read_labels(path)
        read_all = partial(read_corpus, path, splits)
    elif (path / DATASETS).is_file():
        datasets = load_datasets([path / DATASETS])
        labels = all_labels(datasets)
        read_all = partial(read_declared, datasets, labels)
    elif path.is_file():
        read_all = partial(read_tasks if is_tasks(path) else read_predicted, path)
    else:
        raise InputError(f"{path}: neither a merged corpus nor a file of predictions or tasks, nor a folder of tasks")
    complete = read_complete(annotated) if annotated else {}

    def read() -> Iterator[ExportDoc]:
        """Yield the texts."""
        for doc in read_all():
            known = complete.get(doc.key)
            yield doc._replace(unknown={k: v for k, v in doc.unknown.items() if k not in known}) if known else doc

    source = Source(read, labels, "" if path.is_dir() else _version(path))
    used: set[str] = set()
    for doc in read_all():
        used |= {*doc.shown, *(label for _, _, label in doc.spans)}
        source.texts += 1
        source.predicted |= doc.predicted
        source.certain |= bool(doc.scores)
    source.labels += sorted(used.difference(labels))
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
