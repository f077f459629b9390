"""Read texts that nobody has annotated: folders of `.txt` files, single ones, and JSONL, plain or compressed."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from labelwise.common.errors import InputError
from labelwise.sources.files import find_files, is_folder, printable, read_file
from labelwise.sources.formats import read_items
from labelwise.sources.prodigy import DOCUMENT


class RawText(NamedTuple):
    """A text, and where it is from: a file's path in its folder, the name that a task gives, or a file and a line.

    text (str | None): None if it can't be used, for the reason that `problem` says.
    """

    text: str | None
    name: str
    problem: str = ""


def read_texts(inputs: Iterable[Path]) -> Iterator[RawText]:
    """Yield the texts of files and folders, one by one.

    RAISES (InputError): an input isn't there, or can't be read.
    """
    for path in inputs:
        if is_folder(path):
            for file in find_files(path, (".txt",)):
                yield _read_file(file, file.relative_to(path).as_posix())
        elif not path.is_file():
            raise InputError(f"{printable(path)}: there is no such file or folder")
        elif path.suffix == ".txt":
            yield _read_file(path, path.name)
        else:
            for item in read_items(path):
                name = f"{path.name}:{item.line}"
                if item.task is not None:
                    meta = item.task.meta if isinstance(item.task.meta, dict) else {}
                    yield RawText(item.task.text, str(meta.get(DOCUMENT) or name))
                elif item.problem:
                    yield RawText(None, name, item.problem)


def _read_file(file: Path, name: str) -> RawText:
    try:
        text = read_file(file).decode("utf8")
    except UnicodeDecodeError:
        return RawText(None, name, "not UTF-8")
    except InputError as error:
        return RawText(None, name, str(error))
    return RawText(text, name) if text.strip() else RawText(None, name, "no text")
