"""Time and memory of the merge, against reading alone; and what one data set more takes.

    python -m benchmarks.merge                # 6,000 texts x 20 labels, 2.3 GB; a quarter of an hour

Times on a machine that others use mean little; ratios of what ran one after the other mean more, so reading and merging
are repeated in turn. `merge_memory` merges many more texts.
"""

import json
import shutil
from pathlib import Path
from statistics import median
from typing import Annotated, NamedTuple

import typer
import yaml

from benchmarks.measure import Measured, measure, write_result

OUT = Path("benchmarks/out")
WHOLE = "a whole merge's seconds"
MEMORY_LIMIT = 400  # MB that the merge may use


class Line(NamedTuple):
    """A line of the table; ratio is that of its seconds, or its memory, to another's."""

    what: str
    seconds: float
    megabytes: float
    ratio: float | None = None
    of: str = ""


def merge(folder: Path, out: Path, *, extra: Path | None = None, keep: bool = False) -> Measured:
    """Merge the data sets of a folder by two processes, from scratch unless `keep`."""
    if not keep:
        shutil.rmtree(out, ignore_errors=True)
    declared = [str(folder / "datasets.yml"), *([str(extra)] if extra else [])]
    return measure("scripts.merge", *declared, str(out), "--project", "project.yml", "--workers", "2")


def make_workload(folder: Path, docs: int) -> None:
    """Make data sets of 20 labels over `docs` texts, if they aren't there."""
    if not (folder / "datasets.yml").exists():
        measure("scripts.make_demo", str(folder), *f"--format prodigy --docs {docs} --labels 20 --words 300".split())


def make_extra(folder: Path, out: Path, tasks: int = 100) -> Path:
    """Make a data set that annotates texts of the first data set again: `tasks` of them, from all over it."""
    out.mkdir(parents=True, exist_ok=True)
    first = yaml.safe_load((folder / "datasets.yml").read_text())[0]
    lines = (folder / first["path"]).read_text().splitlines()
    (out / "extra.jsonl").write_text("".join(line + "\n" for line in lines[:: len(lines) // tasks][:tasks]))
    declared = [{"name": "extra", "path": "extra.jsonl", "labels": first["labels"]}]
    (out / "datasets.yml").write_text(yaml.safe_dump(declared))
    return out / "datasets.yml"


def main(
    workload: Annotated[Path, typer.Option(help="6,000 texts; made if it isn't there")] = OUT / "workload" / "prodigy",
    rounds: Annotated[int, typer.Option(help="How often reading and merging are repeated")] = 3,
) -> None:
    """Measure, write the table; fail if a limit is exceeded."""
    make_workload(workload, 6000)
    out = OUT / "merge"
    reads, merges = [], []
    for _ in range(rounds):
        reads.append(measure("benchmarks.read_lines", str(workload)))
        merges.append(merge(workload, out))
    ratio = median(ours.seconds / theirs.seconds for ours, theirs in zip(merges, reads, strict=True))
    again = merge(workload, out, keep=True)
    extra = make_extra(workload, OUT / "merge_extra")
    more = merge(workload, out, extra=extra, keep=True)
    whole = merge(workload, OUT / "merge_whole", extra=extra)
    lines = [
        line("orjson.loads of every line, one process", *reads),
        line("merge, 2 workers", *merges, ratio=ratio, of=f"reading's seconds, median of {rounds}"),
        line("nothing new", again, ratio=again.seconds / merges[-1].seconds, of=WHOLE),
        line("a data set of 100 tasks more", more, ratio=more.seconds / whole.seconds, of=WHOLE),
    ]
    columns = {"what": "", "seconds": ",.1f", "memory, MB": ",.0f", "ratio": ".2f", "of": ""}
    write_result("merge", columns, lines)
    if lines[1].megabytes > MEMORY_LIMIT:
        raise SystemExit(f"merge: {lines[1].megabytes:.0f} MB")
    if digest(out) != digest(OUT / "merge_whole"):
        raise SystemExit("a data set more: not what a whole merge gives")


def line(what: str, *taken: Measured, ratio: float | None = None, of: str = "") -> Line:
    """Make a line from the medians."""
    return Line(what, median(one.seconds for one in taken), median(one.megabytes for one in taken), ratio, of)


def digest(out: Path) -> str:
    """Return what names every partition and its bytes."""
    return json.dumps(json.loads((out / "manifest.json").read_text()), sort_keys=True)


if __name__ == "__main__":
    typer.run(main)
