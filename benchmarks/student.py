"""A fast pipeline that learns from the predictions of a slow one: what are raw texts worth?

    python -m benchmarks.student --corpus assets/prodigy_jsonl/food_data.jsonl

The first texts of train keep their annotation, and the others are raw (`public` divides the corpus).
"""

import json
from pathlib import Path

import msgspec

from benchmarks.public import merge
from labelwise.base.text import text_key
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions
from labelwise.corpus.texts import key_of
from labelwise.merge.rules.settings import read_settings
from labelwise.merge.run import merge_data


def divide(corpus: Path, texts: int, folder: Path) -> Path:
    """Merge a corpus whose train has so many texts; write the others to raw.jsonl, without their annotation.

    folder (Path): folder for the corpus, and what it is made from.
    RETURNS (Path): the merged corpus.
    """
    folder.mkdir(parents=True)
    whole = merge(corpus, "all", folder)
    keys = [key_of(doc) for file in find_partitions(whole / "train") for doc in read_stored_docs(file)]
    others = {*keys[texts:]}
    tasks = [json.loads(line) for line in (folder / "train.jsonl").read_text(encoding="utf8").splitlines()]
    raw = [task for task in tasks if text_key(task["text"]).hex() in others]
    gold = [task for task in tasks if text_key(task["text"]).hex() not in others]
    (folder / "train.jsonl").write_text("".join(json.dumps(task) + "\n" for task in gold), encoding="utf8")
    (folder / "raw").mkdir()
    lines = (json.dumps({"text": task["text"]}) + "\n" for task in raw)
    (folder / "raw" / "raw.jsonl").write_text("".join(lines), encoding="utf8")
    settings = msgspec.structs.replace(read_settings(Path("project.yml")), dev_ratio=0.1, test_ratio=0.0)
    merge_data([folder / "datasets.yml"], folder / "corpus", settings)
    return folder / "corpus"
