"""The results, a line of JSON for each training, appended when it ends; what is there isn't computed again.

Nothing tells that a result is of older code, or of another config: after such a change, delete its line.
"""

import json
from collections.abc import Callable
from typing import Any

from benchmarks.coverage.data import OUT

RESULTS = OUT / "results.jsonl"

Row = dict[str, Any]


def read() -> list[Row]:
    """Read all results."""
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf8").splitlines()]


def once(key: Row, work: Callable[[], Row]) -> None:
    """Work, and append what comes of it, unless it is there."""
    if any(row.items() >= key.items() for row in read()):
        return
    row = key | work()
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.open("a", encoding="utf8") as file:
        file.write(json.dumps(row) + "\n")
    print(row, flush=True)
