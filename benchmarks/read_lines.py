"""The merge's baseline, reading alone: `python -m benchmarks.read_lines FOLDER`."""

from pathlib import Path
from typing import Annotated

import orjson
import typer


def main(folder: Annotated[Path, typer.Argument(help="Datasets, one JSONL file each")]) -> None:
    """Parse every line with orjson, one by one, and forget it."""
    for path in sorted(folder.glob("*.jsonl")):
        with path.open("rb") as lines:
            for line in lines:
                orjson.loads(line)


if __name__ == "__main__":
    typer.run(main)
