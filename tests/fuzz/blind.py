"""Fuzz targets without a fuzzer: inputs are changed seeds, by chance, one run after another.

    python -m tests.fuzz.blind --runs 2000 --target conll

An input that breaks a promise is written to `benchmarks/out/fuzz/TARGET/`, and stops its target.
"""

import random
import sys
from pathlib import Path
from typing import Annotated

import typer

from tests.fuzz.mutate import any_bytes, mutated
from tests.fuzz.seeds import SEEDS
from tests.fuzz.targets import TARGETS


def run_changed(name: str, runs: int, seed: int = 0, out: Path | None = None) -> int:
    """Run a target on changed seeds; return how many of them left something to read.

    out (Path | None): an input that breaks a promise is written there.
    """
    target, seeds, rng = TARGETS[name], SEEDS[name](), random.Random(seed)
    read = 0
    for _ in range(runs):
        data = rng.choice(seeds)
        for _ in range(rng.randrange(1, 4)):
            data = mutated(target.change, data, rng.randrange(2**32), any_bytes(rng), head=target.head)
        try:
            read += target.run(data) > 0
        except Exception:
            if out:
                (out / name).mkdir(parents=True, exist_ok=True)
                (out / name / f"blind-{seed}").write_bytes(data)
            raise
    return read


def main(
    runs: Annotated[int, typer.Option(help="Inputs for each target")] = 2000,
    target: Annotated[list[str] | None, typer.Option(help=f"{', '.join(TARGETS)}; all by default")] = None,
    seed: Annotated[int, typer.Option(help="Another one has other inputs")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for what is found")] = Path("benchmarks/out/fuzz"),
) -> None:
    """Fuzz, and print how many inputs left something to read."""
    for name in target or TARGETS:
        print(f"{name}: {runs:,} inputs, {run_changed(name, runs, seed, out):,} of them read", flush=True)


if __name__ == "__main__":
    sys.exit(typer.run(main))
