"""What a merge is compared with: reading alone, and what people write when they need one.

python -m benchmarks.baselines read FOLDER
python -m benchmarks.baselines naive FOLDER OUT.spacy --docs 300
"""

import json
from collections import defaultdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import orjson
import spacy
import typer
from spacy.tokens import DocBin
from spacy.util import filter_spans

app = typer.Typer(help=__doc__)
Folder = Annotated[Path, typer.Argument(help="Data sets, one JSONL file each")]


@app.command()
def read(folder: Folder) -> None:
    """Parse every line with orjson, one by one, and forget it."""
    for path in sorted(folder.glob("*.jsonl")):
        with path.open("rb") as lines:
            for line in lines:
                orjson.loads(line)


@app.command()
def naive(
    folder: Folder,
    out: Annotated[Path, typer.Argument(help="File to write")],
    docs: Annotated[int, typer.Option(help="How many tasks to read from each data set")],
) -> None:
    """Load all data sets, group their tasks by input hash, filter the spans, write one DocBin."""
    datasets: list[list[dict[str, Any]]] = []
    for path in sorted(folder.glob("*.jsonl")):
        with path.open(encoding="utf8") as lines:
            datasets.append([json.loads(line) for line in islice(lines, docs)])
    groups = defaultdict(list)
    for tasks in datasets:
        for task in tasks:
            if task["answer"] == "accept":
                groups[task["_input_hash"]].append(task)
    nlp = spacy.blank("en")
    bin = DocBin(store_user_data=True)
    for group in groups.values():
        doc = nlp.make_doc(group[0]["text"])
        spans = [doc.char_span(span["start"], span["end"], span["label"]) for task in group for span in task["spans"]]
        doc.ents = filter_spans([span for span in spans if span is not None])
        bin.add(doc)
    bin.to_disk(out)


if __name__ == "__main__":
    app()
