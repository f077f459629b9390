"""Memory of training, which streams its texts: ten times the texts should take the same memory.

    python -m benchmarks.loaders              # 6,000 and 60,000 texts of 3,500 characters: 20 GB of disk

Two of these texts make a batch, so the steps of a training read few of them: `read_epoch` reads all.
"""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.measure import Cell, make_corpus, measure, write_result

OUT = Path("benchmarks/out/loaders")
FLAT_LIMIT = 1.05  # ten times the texts may take this many times the memory


def main(
    docs: Annotated[int, typer.Option(help="Texts of the small corpus; the large one has ten times as many")] = 6000,
    steps: Annotated[int, typer.Option(help="Steps of each training")] = 150,
) -> None:
    """Measure; fail if the memory isn't flat."""
    corpora = {texts: make_corpus(texts, OUT) for texts in (docs, 10 * docs)}
    rows: list[list[Cell]] = []
    failed = []
    for name in ("train", "read an epoch"):
        peaks: list[float] = []
        for texts, corpus in corpora.items():
            if name == "train":
                files = ["configs/cpu.cfg", str(corpus), str(OUT / "model"), "--curve", str(OUT / "curve.tsv")]
                taken = measure("scripts.train", *files, "--max-steps", str(steps))
            else:
                taken = measure("benchmarks.read_epoch", str(corpus))
            peaks.append(taken.megabytes)
            growth = peaks[-1] / peaks[0] if len(peaks) > 1 else None
            rows.append([name, texts, taken.seconds, taken.megabytes, growth])
        failed += [f"{name}: {peaks[1] / peaks[0]:.2f}"] if peaks[1] > FLAT_LIMIT * peaks[0] else []
    columns = {"what": "", "texts": ",", "seconds": ",.0f", "memory, MB": ",.0f", "of a tenth's memory": ".2f"}
    write_result("read_epoch", columns, rows)
    if failed:
        raise SystemExit(f"ten times the texts take more memory: {', '.join(failed)}")


if __name__ == "__main__":
    typer.run(main)
