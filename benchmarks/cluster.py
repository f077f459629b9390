"""Predicting and merging on a Dask cluster of this machine, with 1, 2 and 4 workers, against one process.

    python -m benchmarks.cluster              # 200,000 texts of 10 words: half an hour on two cores

Fails if the bytes differ. Needs `distributed`.
"""

import hashlib
import os
import random
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.measure import Cell, make_corpus, measure, train_cpu, write_result

OUT = Path("benchmarks/out/cluster")
STEPS, FILES, WORDS = 100, 20, 10


@contextmanager
def cluster(workers: int) -> Any:
    """Start a scheduler and workers, and set the scheduler's address in the environment; nothing for 0 workers."""
    if not workers:
        yield
        return
    address = "tcp://127.0.0.1:8796"
    dask = [sys.executable, "-m", "dask"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = [*dask, *["scheduler", "--host", "127.0.0.1", "--port", "8796", "--no-dashboard"]]
    worker = [*dask, "worker", address, *f"--nworkers {workers} --nthreads 1 --no-dashboard".split()]
    started = [subprocess.Popen(command, **quiet) for command in (scheduler, worker)]
    os.environ["DASK_SCHEDULER_ADDRESS"] = address
    try:
        time.sleep(10)
        yield
    finally:
        del os.environ["DASK_SCHEDULER_ADDRESS"]
        for process in reversed(started):
            process.terminate()
            process.wait()


def write_texts(folder: Path, texts: int) -> None:
    """Write random texts to FILES files of JSONL, unless they exist."""
    if folder.exists():
        return
    folder.mkdir(parents=True)
    rng = random.Random(0)
    words = ["".join(rng.choices("aeioulnrst", k=rng.randint(2, 9))) for _ in range(5000)]
    for number in range(FILES):
        lines = (f'{{"text": "{" ".join(rng.choices(words, k=WORDS))}"}}\n' for _ in range(texts // FILES))
        (folder / f"{number:02d}.jsonl").write_text("".join(lines), encoding="utf8")


def digest(folder: Path, kinds: tuple[str, ...]) -> str:
    """Digest a folder's files of some kinds."""
    sha = hashlib.sha256()
    for path in sorted(path for kind in kinds for path in folder.rglob(kind)):
        sha.update(path.read_bytes())
    return sha.hexdigest()


def main(
    texts: Annotated[int, typer.Option(help="Texts to predict")] = 200_000,
    docs: Annotated[int, typer.Option(help="Texts to merge, of 5 labels")] = 6000,
) -> None:
    """Measure; fail if the bytes differ."""
    OUT.mkdir(parents=True, exist_ok=True)
    write_texts(OUT / f"raw-{texts}", texts)
    model, tasks = train_cpu(make_corpus(600, OUT, words=100), OUT, STEPS), OUT / f"tasks-{docs}"
    if not tasks.exists():
        measure("scripts.make_demo", str(tasks), *f"--format prodigy --docs {docs} --labels 5 --words 300".split())
    predict = ["scripts.predict", str(model), str(OUT / f"raw-{texts}"), "--out", str(OUT / "predicted")]
    merge = ["scripts.merge", str(tasks / "datasets.yml"), str(OUT / "corpus"), "--workers", "1"]
    stages = (
        (f"predict {texts:,} texts", predict, OUT / "predicted", ("*.jsonl",)),
        (f"merge {docs:,} texts", merge, OUT / "corpus", ("*.spacy", "*.parquet")),
    )
    rows: list[list[Cell]] = []
    for name, command, out, kinds in stages:
        digests, alone = set(), 0.0
        for workers in (0, 1, 2, 4):
            shutil.rmtree(out, ignore_errors=True)
            with cluster(workers):
                measured = measure(*command)
            digests.add(digest(out, kinds))
            alone = alone or measured.seconds
            rows.append([name, str(workers or "no cluster"), measured.seconds, alone / measured.seconds])
        if len(digests) > 1:
            raise SystemExit(f"{name}: the bytes differ")
    columns = {"what": "", "workers": "", "seconds": ",.0f", "speed, of no cluster": ".2f"}
    write_result("cluster", columns, rows)


if __name__ == "__main__":
    typer.run(main)
