"""Memory and time of the converter and the merge on 6,000 texts and 20 labels.

    python -m benchmarks.workload

Makes the corpus first, 2.3 GB for 6,000 texts: as brat for the converter, as Prodigy data sets for the merge.
"""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.measure import measure

OUT = Path("benchmarks/out/workload")
LIMIT = 600 * 2**20  # bytes that neither the converter nor the merge may take


def main(
    docs: Annotated[int, typer.Option(help="Number of texts")] = 6000,
    workers: Annotated[int, typer.Option(help="Processes of the merge")] = 2,
) -> None:
    """Make the corpus, convert the one form of it, merge the other; print what each took."""
    made = ["--docs", str(docs), "--labels", "20", "--words", "300"]
    brat, prodigy, tasks, corpus = (str(OUT / name) for name in ("brat", "prodigy", "tasks", "corpus"))
    rules = ["--tokenizer", "project.yml"]
    taken = {
        "make_demo, brat": measure("scripts.make_demo", brat, *made),
        "make_demo, Prodigy": measure("scripts.make_demo", prodigy, "--format", "prodigy", *made),
        "convert_brat": measure("scripts.convert_brat", brat, tasks),
        "merge": measure("scripts.merge", f"{prodigy}/datasets.yml", corpus, *rules, "--workers", str(workers)),
    }
    print("\n| command | seconds | peak memory, MB |\n|---|---|---|")
    for name, (seconds, peak) in taken.items():
        print(f"| {name} | {seconds:.1f} | {peak / 2**20:.0f} |")
    if max(taken["convert_brat"].peak_pss, taken["merge"].peak_pss) > LIMIT:
        raise SystemExit(f"More than {LIMIT / 2**20:.0f} MB were taken")


if __name__ == "__main__":
    typer.run(main)
