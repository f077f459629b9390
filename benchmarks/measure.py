"""Make a corpus, measure a command's time and its process tree's memory, and write results to files."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any, NamedTuple

import msgspec
import numpy as np
import yaml

from labelwise.base.parallel import count_cores, tree_memory
from labelwise.evaluate.resampling import students_t

INTERVAL = 0.1  # seconds between two samples
DEV = 300  # texts of dev in a corpus that is made, roughly
RESULTS = Path("benchmarks/results")
Cell = str | int | float | None | tuple[float, float, float]


class Measured(NamedTuple):
    """A command's seconds, and its peak of memory, with shared pages counted once."""

    seconds: float
    megabytes: float


class Machine(msgspec.Struct):
    """The machine of a measurement; None for unknown."""

    processor: str | None
    cores: int | None
    memory_gb: int | None


class Result(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A file of benchmarks/results: the only source of its numbers in the pages (`benchmarks.tables`).

    date, commit (str | None): None if unknown.
    note (str): the circumstances.
    columns (dict): by name, the format of its numbers, such as `,.0f`; "" for text.
    rows (list): three numbers in one cell are the median, the least and the most.
    curves (dict): points to draw, by name.
    printed (list): lines that the command printed, in place of a table.
    """

    command: str
    date: str | None
    commit: str | None
    machine: Machine
    note: str = ""
    columns: dict[str, str] = {}
    rows: list[list[Cell]] = []
    curves: dict[str, list[tuple[float, float]]] = {}
    printed: list[str] = []


def measure(*arguments: str, cwd: Path | None = None) -> Measured:
    """Run `python -m arguments` with our output.

    cwd (Path | None): its working directory; its code is this one's.

    RAISES (subprocess.CalledProcessError): if it fails.
    """
    command = [sys.executable, "-m", *arguments]
    peak = 0
    start = time.perf_counter()
    code = os.pathsep.join((str(Path.cwd()), os.environ.get("PYTHONPATH", "")))
    process = subprocess.Popen(command, cwd=cwd, env={**os.environ, "PYTHONPATH": code})
    while process.poll() is None:
        peak = max(peak, tree_memory(process.pid)[0])
        time.sleep(INTERVAL)
    seconds = time.perf_counter() - start
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Measured(seconds, peak / 2**20)


def train_cpu(corpus: Path, out: Path, steps: int) -> Path:
    """Train configs/cpu.cfg in a folder, unless that is done; return the pipeline's folder."""
    model = out / "training/cpu/model-best"
    if not model.exists():
        (out / "configs").mkdir(exist_ok=True)
        shutil.copy("configs/cpu.cfg", out / "configs")
        measure("scripts.train", "cpu", "--corpus", str(corpus.absolute()), "--max-steps", str(steps), cwd=out)
    return model


def make_corpus(
    docs: int, out: Path, *, labels: int = 5, words: int = 790, dev_ratio: float = 0.0, test_ratio: float = 0.0
) -> Path:
    """Make and merge datasets of a label each over `docs` texts, unless they exist.

    dev_ratio (float): share of the texts; 0 for DEV texts.
    """
    corpus = out / f"corpus-{docs}"
    if not (corpus / "manifest.json").exists():
        tasks = out / f"tasks-{docs}"
        size = f"--format prodigy --docs {docs} --labels {labels} --words {words}"
        measure("scripts.make_demo", str(tasks), *size.split())
        project = yaml.safe_load(Path("project.yml").read_text(encoding="utf8"))
        splits = {"dev_ratio": dev_ratio or DEV / docs, "test_ratio": test_ratio}
        sections = {"merge": project["merge"] | splits | {"near_duplicates": "off"}}
        (tasks / "project.yml").write_text(yaml.safe_dump(sections, allow_unicode=True), encoding="utf8")
        (tasks / "configs").mkdir()
        shutil.copy("configs/tokenizer.yml", tasks / "configs")
        declared = str(tasks / "datasets.yml")
        measure("scripts.merge", declared, str(corpus), "--project", str(tasks / "project.yml"))
        shutil.rmtree(tasks)
    return corpus


def find_commit() -> str | None:
    """Return the commit of the code, "with changes" if tracked files differ; None outside of git."""
    describe = ["git", "describe", "--always", "--exclude=*", "--abbrev=7", "--dirty= with changes"]
    try:
        return subprocess.run(describe, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):  # no git; an archive of the code
        return None


def write_result(name: str, columns: Mapping[str, str], rows: Sequence[Sequence[Cell]], **more: Any) -> None:
    """Write a table to benchmarks/results/NAME.json, and print it.

    more: other fields of `Result`, such as another command than the running one.
    """
    fields = {
        "command": " ".join(["python", *sys.orig_argv[1:]]),
        **more,
        "columns": dict(columns),
        "rows": [list(map(shorten, row)) for row in rows],
    }
    result = Result(date=date.today().isoformat(), commit=find_commit(), machine=this_machine(), **fields)
    (RESULTS / f"{name}.json").write_text(encode(result), encoding="utf8")
    print(f"\n{as_table(result)}\n\npython -m benchmarks.tables puts this into the pages")


def spread(values: Sequence[float]) -> Cell:
    """Return the median, the least and the most."""
    return median(values), min(values), max(values)


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean, and its 95% interval by Student's t."""
    middle, degrees = mean(values), np.array([len(values) - 1.0])
    half = float(students_t(degrees)[0]) * stdev(values) / len(values) ** 0.5
    return middle, middle - half, middle + half


def shorten(cell: Cell) -> Cell:
    """Round numbers to four decimals."""
    if isinstance(cell, tuple):
        return round(cell[0], 4), round(cell[1], 4), round(cell[2], 4)
    return round(cell, 4) if isinstance(cell, float) else cell


def encode(result: Result) -> str:
    """Format a result as JSON, a row a line."""
    fields = []
    for name, value in msgspec.to_builtins(result).items():
        written = json.dumps(value, ensure_ascii=False)
        if isinstance(value, list):
            lines = ",\n    ".join(json.dumps(item, ensure_ascii=False) for item in value)
            written = f"[\n    {lines}\n  ]"
        fields.append(f"  {json.dumps(name)}: {written}")
    return "{\n" + ",\n".join(fields) + "\n}\n"


def as_table(result: Result) -> str:
    """Format a result's rows as a Markdown table."""
    forms = result.columns.values()
    rows = [list(result.columns), ["---:" if form else "---" for form in forms]]
    rows += [[as_text(cell, form) for cell, form in zip(row, forms, strict=True)] for row in result.rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def as_text(cell: Cell, form: str) -> str:
    """Format a cell; a median has its range behind it."""
    if isinstance(cell, tuple):
        middle, least, most = (format(value, form) for value in cell)
        return f"{middle} ({least} to {most})"
    return "" if cell is None else cell if isinstance(cell, str) else format(cell, form)


def this_machine() -> Machine:
    """Describe this machine, as far as Linux tells."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf8").splitlines()
    cpuinfo = dict(line.replace("\t", "").split(": ", 1) for line in lines if ": " in line)
    named = {"model name": "", "cpu family": "family ", "model": "model "}
    parts = [f"{word}{cpuinfo[name]}" for name, word in named.items() if name in cpuinfo]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(", ".join(parts) or None, count_cores(), round(memory / 2**30))
