"""Write the results of a stage that has ended: python -m benchmarks.gpu_kit.row STAGE STATUS BEGUN LOG.

A line of results.jsonl and of table.txt, and the stage's output in log.txt, all in $OUT.
"""

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

TIMED_OUT = (124, 137)
MAX_LOG_CHARS = 60_000  # characters of a stage's output in log.txt


def collect(stage: str, status: int, output: str) -> dict[str, Any]:
    """Return a stage's results, and its error if it failed or was cut off."""
    row: dict[str, Any] = {"stage": stage, "rc": status}
    for line in output.splitlines():
        if line.startswith("RESULT "):
            with suppress(json.JSONDecodeError):  # the stage was killed within the line
                row |= json.loads(line.removeprefix("RESULT "))
    if status:
        row["error"] = "timed out" if status in TIMED_OUT else output.strip()[-600:]
    return row


def as_line(row: dict[str, Any]) -> str:
    """Format a row for table.txt."""
    short = "; ".join(f"{key} {value}" for key, value in row.items() if key not in ("stage", "detail", "error"))
    return f"{row['stage']}: {short}" + (f"\n    ERROR {row['error'][-300:]}" if "error" in row else "")


def main(stage: str, status: int, begun: float, log: Path) -> None:
    """Write the results of a stage."""
    output, out = log.read_text(errors="replace"), Path(os.environ["OUT"])
    now = time.time()
    row = collect(stage, status, output)
    row |= {"seconds": round(now - begun, 1), "at": round(now - float(os.environ["KIT_START"]))}
    with (out / "results.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    with (out / "table.txt").open("a") as file:
        file.write(as_line(row) + "\n")
    with (out / "log.txt").open("a") as file:
        lines = "".join(f"{line}\n" for line in output.splitlines() if len(line) < 2000)
        file.write(f"\n===== {stage}, rc {status}\n{lines[-MAX_LOG_CHARS:]}")
    print(as_line(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
