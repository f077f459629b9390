"""Does it hold at size? A million short texts, and five hundred labels, beside a hundredth and a fraction of them.

    python -m benchmarks.at_size                  # needs 30 GB of disk, and an hour on two cores
    python -m benchmarks.at_size --texts 100000   # a tenth of it
    python -m benchmarks.at_size --sets 2         # as many texts, and a tenth of the tasks

Tasks of about 0.5 KB, without tokens. Merge, then one epoch of reading and batching, then evaluation of a tenth, with a
pipeline that was trained for a few steps.
"""

import random
import shutil
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import yaml

from benchmarks.measure import Measured, measure, project_with, write_result
from labelwise.corpus.tasks import input_hash

OUT = Path("benchmarks/out/at_size")
WORDS = 5_000  # in the vocabulary
LENGTH = 40  # words in a text
NAMES = 200  # of each label
MARKED = 3  # labels that occur in a text, on average


def make_tasks(texts: int, labels: int, out: Path) -> Path:
    """Write a data set for each label, complete on all texts; returns the declaration."""
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


def run(texts: int, labels: int, steps: int) -> dict[str, Measured]:
    """Merge, read, and evaluate; returns what each took."""
    folder = OUT / f"{texts}-{labels}"
    shutil.rmtree(folder, ignore_errors=True)
    declared = make_tasks(texts, labels, folder / "tasks")
    size = sum(file.stat().st_size for file in (folder / "tasks").iterdir())
    print(f"{texts:,} texts x {labels} labels: {size / 2**30:.1f} GB", flush=True)
    corpus, model = folder / "corpus", folder / "model"
    settings = project_with(folder, dev_ratio=0.01)
    taken = {"merge": measure("scripts.merge", str(declared), str(corpus), *settings)}
    shutil.rmtree(folder / "tasks")
    shutil.rmtree(corpus / ".cache")
    taken["read an epoch"] = measure("benchmarks.read_epoch", str(corpus))
    curve = ("--curve", str(folder / "curve.tsv"))
    measure("scripts.train", "configs/cpu.cfg", str(corpus), str(model), *curve, "--max-steps", str(steps))
    scores = folder / "scores.json"
    options = ("--texts", str(folder / "texts.parquet"), "--pairs", str(folder / "pairs.parquet"))
    taken["evaluate a tenth"] = measure("scripts.evaluate", str(model), str(corpus / "test"), str(scores), *options)
    for name, one in taken.items():
        print(f"{name}: {one.seconds:,.0f} s, {one.megabytes:,.0f} MB", flush=True)
    return taken


def main(
    texts: Annotated[int, typer.Option(help="Texts of the large workload")] = 1_000_000,
    sets: Annotated[int, typer.Option(help="Its data sets, each of a label")] = 20,
    labels: Annotated[int, typer.Option(help="Labels of the wide workload, on 2,000 texts")] = 500,
    steps: Annotated[int, typer.Option(help="Updates of the pipeline that is evaluated")] = 100,
) -> None:
    """Run the small workloads and the large ones, and write the table."""
    workloads = [(texts // 100, sets), (texts, sets), (2_000, 20), (2_000, labels)]
    found = {workload: run(*workload, steps) for workload in workloads}
    columns = {"texts": ",", "labels": "", "what": "", "seconds": ",.0f", "memory, MB": ",.0f"}
    rows = [
        (count, str(of), name, one.seconds, one.megabytes)
        for (count, of), taken in found.items()
        for name, one in taken.items()
    ]
    write_result("at_size", columns, rows)


if __name__ == "__main__":
    typer.run(main)
