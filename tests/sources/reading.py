"""Sources that are written and read in one call, as tests state them."""

import json
from pathlib import Path
from typing import Any

from labelwise.sources.formats import read_items


def write(path: Path, content: str | bytes | list[Any]) -> Path:
    """Write text, bytes, or rows: a `.json` has them as one array, other files one a line; a str is a line as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, list) and path.suffix == ".json":
        content = json.dumps(content, ensure_ascii=False)
    elif isinstance(content, list):
        content = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path: Path, content: str | bytes | list[Any] | None = None, **how: Any) -> list[Any]:
    """Read a file, written first if it has a content: of each task its text and marked words, of each problem why."""
    if content is not None:
        write(path, content)
    found: list[Any] = []
    for item in read_items(path, **how):
        if task := item.task:
            text = task.text or ""
            found.append((text, [(text[span.start : span.end], span.label) for span in task.spans or ()]))
        if item.problem:
            found.append(item.problem)
    return found
