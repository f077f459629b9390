"""Fuzz everything that reads what others have written, guided by coverage, for a number of inputs each.

    .venv-dev/bin/pip install 'atheris>=3'                            # wheels for Linux
    .venv-dev/bin/python -m tests.fuzz                                # a short run of all targets
    .venv-dev/bin/python -m tests.fuzz --runs 2000000 --target rows

An input that breaks a promise is written to `benchmarks/out/fuzz/TARGET/`,
as `crash-…`, `timeout-…` or `oom-…`, and the command fails; `--replay FILE` runs it again, without Atheris. Inputs that
reached new code stay in `benchmarks/out/fuzz/TARGET/corpus`, where the next run begins.

What must hold is in `targets`. An input may take ten seconds (`--seconds`) and 2 GB at most.
"""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from tests.fuzz.seeds import SEEDS
from tests.fuzz.targets import TARGETS

OUT = Path("benchmarks/out/fuzz")
MEMORY = Path("/dev/shm")  # files are written there, where a system has it
MEGABYTES, BYTES = 2048, 4096  # that an input may take, and have


def fuzz(name: str, runs: int, seconds: int, out: Path) -> tuple[int, dict[str, int]]:
    """Fuzz a target in a process of its own; return its exit status, and libFuzzer's figures."""
    corpus = out / name / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in SEEDS[name]():
        (corpus / hashlib.sha256(seed).hexdigest()).write_bytes(seed)
    words = out / name / "words"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in TARGETS[name].words or ["A"]), encoding="ascii")
    options = {
        "runs": runs,
        "timeout": seconds,
        "rss_limit_mb": MEGABYTES,
        "max_len": BYTES,
        "dict": words,
        "artifact_prefix": f"{out / name}/",
        "print_final_stats": 1,
        "verbosity": 1,
    }
    command = [sys.executable, "-m", "tests.fuzz.worker", name, *(f"-{key}={options[key]}" for key in options)]
    with (
        TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder,
        (out / name / "log").open("w+", encoding="utf8", errors="replace") as log,
    ):
        environment = {**os.environ, "TMPDIR": folder}
        done = subprocess.run([*command, str(corpus)], stdout=log, stderr=log, env=environment, check=False)
        status = done.returncode
        log.seek(0)
        printed = log.read()
    figures = {key: int(value) for key, value in re.findall(r"stat::(\w+):\s+(\d+)", printed)}
    if status:
        print(printed[-3000:])
    return status, figures


def _escaped(word: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word.encode())


def main(
    runs: Annotated[int, typer.Option(help="Inputs for each target")] = 20_000,
    target: Annotated[list[str] | None, typer.Option(help=f"{', '.join(TARGETS)}; all by default")] = None,
    seconds: Annotated[int, typer.Option(help="The most that an input may take; more on a busy machine")] = 10,
    replay: Annotated[Path | None, typer.Option(help="A file to run again, with one target")] = None,
    out: Annotated[Path, typer.Option(help="Folder for what is found")] = OUT,
) -> None:
    """Fuzz, and print how many inputs were run, how fast, and at what peak of memory."""
    names = target or list(TARGETS)
    if replay:
        for name in names:
            TARGETS[name].run(replay.read_bytes())
        return
    failed = []
    print("| target | inputs | inputs per second | peak memory, MB | slowest, s | |\n|---|---|---|---|---|---|")
    for name in names:
        status, figures = fuzz(name, runs, seconds, out)
        found = "" if status == 0 else "broken"
        failed += [name] if status else []
        keys = ("number_of_executed_units", "average_exec_per_sec", "peak_rss_mb", "slowest_unit_time_sec")
        print(f"| {name} | {' | '.join(f'{figures.get(key, 0):,}' for key in keys)} | {found} |", flush=True)
    if failed:
        raise SystemExit(f"Promises were broken: see {', '.join(str(out / name) for name in failed)}")


if __name__ == "__main__":
    typer.run(main)
