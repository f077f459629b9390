"""Where the tasks of a partition's texts are in the task files; and how to read them."""

from typing import NamedTuple

from labelwise.common.errors import InputError
from labelwise.common.keys import join_key, text_key
from labelwise.merge.jobs import MergeJob
from labelwise.merge.rules.answers import Answer
from labelwise.merge.task_store import KeyRange, TaskReader, decode_task, read_index


class TaskPlace(NamedTuple):
    """Where a task is: `task` bytes from `offset` in a task file, followed by `text` bytes of text."""

    keys: KeyRange
    line: int
    offset: int
    task: int
    text: int


def find_texts(job: MergeJob) -> list[tuple[bytes, list[TaskPlace]]]:
    """List the texts of a partition by key, sorted, each with its tasks in the order of sources and lines."""
    texts: dict[bytes, list[TaskPlace]] = {}
    for keys in job.ranges:
        offset = keys.offset
        for high, low, line, _, task, text in read_index(keys.path, keys.first, keys.count).tolist():
            place = TaskPlace(keys, keys.base + line, offset, task, text)
            texts.setdefault(join_key(high, low), []).append(place)
            offset += task + text
    return sorted(texts.items())


def read_text(key: bytes, place: TaskPlace, job: MergeJob, reader: TaskReader) -> str:
    """Read the text of a task.

    RAISES (InputError): it doesn't match the key.
    """
    text = reader.read(place.keys.path, place.offset + place.task, place.text)
    if text_key(text) != key:
        raise InputError(f"{job.folder.parent.parent}: the cache is damaged; delete it and run the merge again")
    return text.decode("utf8", "surrogatepass")


def read_answer(place: TaskPlace, job: MergeJob, reader: TaskReader) -> Answer:
    """Read a task."""
    source = job.sources[place.keys.source]
    task = decode_task(reader.read(place.keys.path, place.offset, place.task))
    return Answer(source.dataset, place.line, task, source.path)
