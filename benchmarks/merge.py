"""Time and memory of the merge, against reading alone and against a home-made one; one text more; ten times the texts.

    python -m benchmarks.merge                # 6,000 texts x 20 labels, 2.3 GB; a quarter of an hour
    python -m benchmarks.merge --large        # 60,000 texts as well: 23 GB of disk, an hour

Times on a machine that others use mean little; ratios of what ran one after the other mean more, so reading and merging
are repeated in turn.
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
NAIVE_DOCS = 600
WHOLE = "a whole merge's seconds"
MEMORY_LIMIT = 400  # MB that the merge may use
FLAT_LIMIT = 1.1  # ten times the texts may take this many times the memory


class Line(NamedTuple):
    """A line of the table; ratio is that of its seconds, or its memory, to another's."""

    what: str
    seconds: float
    megabytes: float
    ratio: float | None = None
    of: str = ""


def merge(folder: Path, out: Path, *options: str, extra: Path | None = None, keep: bool = False) -> Measured:
    """Merge the data sets of a folder, from scratch unless `keep`."""
    if not keep:
        shutil.rmtree(out, ignore_errors=True)
    declared = [str(folder / "datasets.yml"), *([str(extra)] if extra else [])]
    return measure("scripts.merge", *declared, str(out), "--project", "project.yml", *options)


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
    workload_large: Annotated[Path, typer.Option(help="60,000 texts")] = OUT / "workload_large" / "prodigy",
    rounds: Annotated[int, typer.Option(help="How often reading and merging are repeated")] = 3,
    large: Annotated[bool, typer.Option("--large", help="60,000 texts as well")] = False,
) -> None:
    """Measure, write the table; fail if a limit is exceeded."""
    make_workload(workload, 6000)
    out = OUT / "merge"
    reads, merges = [], []
    for _ in range(rounds):
        reads.append(measure("benchmarks.baselines", "read", str(workload)))
        merges.append(merge(workload, out, "--workers", "2"))
    ratio = median(ours.seconds / theirs.seconds for ours, theirs in zip(merges, reads, strict=True))
    naive = measure("benchmarks.baselines", "naive", str(workload), str(out / "naive.spacy"), "--docs", str(NAIVE_DOCS))
    lines = [
        line("orjson.loads of every line, one process", *reads),
        line("merge, 2 workers", *merges, ratio=ratio, of=f"reading's seconds, median of {rounds}"),
        line("merge, 1 worker", merge(workload, out, "--workers", "1")),
        line("merge, 4 workers", merge(workload, out, "--workers", "4")),
        line(f"home-made, a tenth of the texts ({NAIVE_DOCS:,}), all in memory", naive),
    ]
    failed = [f"{line.what}: {line.megabytes:.0f} MB" for line in lines[1:2] if line.megabytes > MEMORY_LIMIT]
    folders = {"6,000": workload}
    if large:
        make_workload(workload_large, 60000)
        read = measure("benchmarks.baselines", "read", str(workload_large))
        big = merge(workload_large, out, "--workers", "2")
        growth = big.peak_pss / median(taken.peak_pss for taken in merges)
        lines += [
            line("60,000 texts: orjson.loads", read),
            line("60,000 texts: merge, 2 workers", big, ratio=growth, of="the memory for 6,000"),
        ]
        failed += [f"ten times the texts take {growth:.2f} of the memory"] if growth > FLAT_LIMIT else []
        folders["60,000"] = workload_large
    for texts, folder in folders.items():
        full = merge(folder, out, "--workers", "2")
        again = merge(folder, out, "--workers", "2", keep=True)
        extra = make_extra(folder, OUT / "merge_extra")
        more = merge(folder, out, "--workers", "2", extra=extra, keep=True)
        whole = merge(folder, OUT / "merge_whole", "--workers", "2", extra=extra)
        same = digest(out) == digest(OUT / "merge_whole")
        failed += [] if same else [f"{texts} texts and a data set more: not what a whole merge gives"]
        lines += [
            line(f"{texts} texts, nothing new", again, ratio=again.seconds / full.seconds, of=WHOLE),
            line(f"{texts} texts, a data set of 100 tasks more", more, ratio=more.seconds / whole.seconds, of=WHOLE),
        ]
    columns = {"what": "", "seconds": ",.1f", "memory, MB": ",.0f", "ratio": ".2f", "of": ""}
    write_result("merge", columns, lines)
    if failed:
        raise SystemExit("; ".join(failed))


def line(what: str, *taken: Measured, ratio: float | None = None, of: str = "") -> Line:
    """Make a line from the medians."""
    return Line(what, median(one.seconds for one in taken), median(one.megabytes for one in taken), ratio, of)


def digest(out: Path) -> str:
    """Return what names every partition and its bytes."""
    return json.dumps(json.loads((out / "manifest.json").read_text()), sort_keys=True)


if __name__ == "__main__":
    typer.run(main)
