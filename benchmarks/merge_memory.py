"""Memory of the merge: a million texts should take little more than enough texts to fill all bounded tables.

    python -m benchmarks.merge_memory                                # needs 20 GB of disk, and an hour on two cores
    python -m benchmarks.merge_memory --texts 200000 --labels 4      # a quarter of an hour

Memory is the peak of all processes, PSS. A process holds up to 20,000 words, which 50,000 short texts have.
"""

import random
import shutil
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import yaml

from benchmarks.measure import Cell, measure, write_result
from labelwise.corpus.tasks import input_hash

OUT = Path("benchmarks/out/merge_memory")
FULL = 50_000  # texts
WORDS = 5_000  # in the vocabulary
LENGTH = 40  # words in a text
NAMES = 200  # of each label
MARKED = 3  # labels that occur in a text, on average
MAX_MEMORY_RATIO = 1.3  # all texts may take this many times the memory


def make_tasks(texts: int, labels: int, out: Path) -> Path:
    """Write a dataset for each label, complete on all texts; return the declaration."""
    rng = random.Random(0)
    vocabulary = ["".join(rng.choices("abcdefghijklmnoprstuvw", k=rng.randint(3, 9))) for _ in range(WORDS)]
    names = [f"LABEL_{number:03d}" for number in range(labels)]
    out.mkdir(parents=True)
    files = [(out / f"{name}.jsonl").open("wb", buffering=2**16) for name in names]
    empty = b'"spans":[],"answer":"accept","_view_id":"ner_manual"}\n'
    for number in range(texts):
        words = [f"Text {number}", *rng.choices(vocabulary, k=LENGTH)]
        marked = {}
        for _ in range(MARKED):
            label, place = rng.randrange(labels), rng.randrange(1, len(words))
            words[place] = f"Name{label}x{rng.randrange(NAMES)}"
            marked[label] = place
        text = " ".join(words)
        head = (
            msgspec.json.encode({"text": text, "_input_hash": input_hash(text), "_timestamp": 1700000000})[:-1] + b","
        )
        for label, file in enumerate(files):
            file.write(head)
            if label not in marked:
                file.write(empty)
                continue
            word = words[marked[label]]
            start = len(" ".join(words[: marked[label]])) + 1
            span = {"start": start, "end": start + len(word), "label": names[label]}
            file.write(b'"spans":[' + msgspec.json.encode(span) + b"]," + empty.partition(b",")[2])
    for file in files:
        file.close()
    declared = [{"name": name.lower(), "path": f"{name}.jsonl", "labels": [name], "kind": "complete"} for name in names]
    (out / "datasets.yml").write_text(yaml.safe_dump(declared), encoding="utf8")
    return out / "datasets.yml"


def main(
    texts: Annotated[int, typer.Option(help=f"Texts, in place of {FULL:,}")] = 1_000_000,
    labels: Annotated[int, typer.Option(help="Datasets, each of a label")] = 20,
) -> None:
    """Measure; fail if the memory isn't flat."""
    rows: list[list[Cell]] = []
    peaks: list[float] = []
    for count in (FULL, texts):
        shutil.rmtree(OUT, ignore_errors=True)
        declared = make_tasks(count, labels, OUT / "tasks")
        measured = measure("scripts.merge", str(declared), str(OUT / "corpus"), "--workers", "2")
        peaks.append(measured.megabytes)
        rows.append([count, labels, measured.seconds, peaks[-1], peaks[-1] / peaks[0] if len(peaks) > 1 else None])
    columns = {"texts": ",", "labels": "", "seconds": ",.0f", "memory, MB": ",.0f", f"of {FULL:,} texts'": ".2f"}
    write_result("merge_memory", columns, rows)
    if peaks[1] > MAX_MEMORY_RATIO * peaks[0]:
        raise SystemExit(f"{texts:,} texts take {peaks[1] / peaks[0]:.2f} times the memory of {FULL:,}")


if __name__ == "__main__":
    typer.run(main)
