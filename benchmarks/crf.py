"""The honest baseline: a CRF with the features of twenty years ago, on the same Docs as labelwise's recognizers.

    python -m benchmarks.crf CORPUS... --size 50 --size 100 --size 200 --size 0

Each corpus is a folder that the merge wrote, whose texts are complete for all labels. All learn from the first texts
of train, and the entities of test are counted; a pipeline's best step is chosen on dev. The CRF is python-crfsuite's,
which only the development environment has. L-BFGS has no seed, so it is trained once.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Annotated, NamedTuple

import pycrfsuite
import typer

from benchmarks.measure import write_result
from labelwise.corpus.docbin_reader import BEGIN, INSIDE, StoredDoc, read_stored_docs
from labelwise.corpus.manifest import find_partitions
from labelwise.corpus.pipeline import load_pipeline, predict_each
from labelwise.train.dev_scores import Counts, scores_of
from labelwise.train.recipe import Recipe, Recognizer
from labelwise.train.run import train_pipeline

TRAINER = {"c1": 0.0, "c2": 1.0, "max_iterations": 150}
METHODS = {"crf": "CRF", "per-label": "per-label", "vectors": "per-label, vectors", "ner": "spaCy's ner"}
Entities = set[tuple[int, int, str]]  # start and end in tokens, and the label
Predict = Callable[[list[StoredDoc]], list[Entities]]


class Score(NamedTuple):
    """F1 of test's entities, the mean of the labels' F1, CPU seconds of training, and words predicted a CPU second."""

    f1: float
    macro_f1: float
    seconds: float
    rate: float


def features_of(words: list[str]) -> list[list[str]]:
    """List the features of each token: of it, of two neighbours on each side, and of pairs of neighbours."""
    forms = [forms_of(word) for word in words]
    lowered = ["", *(word.lower() for word in words), ""]
    found = []
    for place, word in enumerate(words):
        features = ["bias", *forms[place], *(f"tri={gram}" for gram in trigrams(word))]
        for offset in (-2, -1, 1, 2):
            there = place + offset
            features += [f"{offset}:{form}" for form in forms[there]] if 0 <= there < len(words) else [f"{offset}:none"]
        features += [
            f"{name}={one}|{other}"
            for name, (one, other) in zip("ln", pairwise(lowered[place : place + 3]), strict=True)
        ]
        found.append(features)
    return found


def forms_of(word: str) -> list[str]:
    """List what is seen of a word: itself, its shape, and up to four characters that it begins and ends with."""
    lowered = word.lower()
    kinds = ("X" if sign.isupper() else "x" if sign.isalpha() else "d" if sign.isdigit() else sign for sign in word[:8])
    affixes = [f"{name}={part}" for n in range(1, 5) for name, part in (("pre", lowered[:n]), ("suf", lowered[-n:]))]
    return [f"lower={lowered}", f"word={word}", f"shape={''.join(kinds)}", *affixes]


def trigrams(word: str) -> list[str]:
    """List all three successive characters of a word, with its limits."""
    limited = f"<{word.lower()}>"
    return [limited[start : start + 3] for start in range(len(limited) - 2)]


def tags_of(stored: StoredDoc) -> list[str]:
    """List the BIO tags of a text's entities."""
    begins = {BEGIN: "B", INSIDE: "I"}
    pairs = zip(stored.iob.tolist(), stored.labels.tolist(), strict=True)
    return [f"{begins[iob]}-{stored.strings[label]}" if iob in begins else "O" for iob, label in pairs]


def entities_of(tags: list[str]) -> Entities:
    """Find the entities of BIO tags; an I that continues no entity of its label begins one."""
    found, start = set(), 0
    for place, (before, tag) in enumerate(pairwise(["O", *tags, "O"])):
        label = before[2:]
        if not label or tag != f"I-{label}":
            if label:
                found.add((start, place, label))
            start = place
    return found


def train_crf(corpus: Path, size: int, folder: Path) -> Predict:
    """Train a CRF."""
    trainer = pycrfsuite.Trainer(verbose=False, params=TRAINER)
    for stored in texts_of(corpus / "train")[: size or None]:
        trainer.append(features_of(words_of(stored)), tags_of(stored))
    trainer.train(str(folder / "crf"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(folder / "crf"))
    return lambda texts: [entities_of(tagger.tag(features_of(words_of(stored)))) for stored in texts]


def train_recognizer(recipe: Recipe, folder: Path) -> Predict:
    """Train a pipeline."""
    train_pipeline(recipe, folder / "model", folder / "curve.tsv")
    nlp = load_pipeline(folder / "model")
    return lambda texts: [
        {(ent.start, ent.end, ent.label_) for ent in doc.ents} for _, doc in predict_each(nlp, iter(texts), len)
    ]


def texts_of(split: Path) -> list[StoredDoc]:
    """Read the texts of a split, in order."""
    return [stored for file in find_partitions(split) for stored in read_stored_docs(file)]


def words_of(stored: StoredDoc) -> list[str]:
    """List the words of a text."""
    return [stored.strings[word] for word in stored.words.tolist()]


def measure(corpus: Path, train: Callable[[Path], Predict]) -> Score:
    """Train, predict test, and count its entities."""
    texts = texts_of(corpus / "test")
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        predict = train(Path(folder))
        trained = time.process_time()
        predicted = predict(texts)
        seconds = time.process_time() - trained
    counts: Counts = Counter()
    for stored, found in zip(texts, predicted, strict=True):
        gold = entities_of(tags_of(stored))
        for kind, spans in (("tp", gold & found), ("fp", found - gold), ("fn", gold - found)):
            counts.update((label, kind) for _, _, label in spans)
    scores = scores_of(counts)
    rate = sum(map(len, texts)) / seconds
    return Score(scores["ents_f"], scores["ents_macro_f"], trained - began, rate)


def main(
    corpora: Annotated[list[Path], typer.Argument(help="Folders that the merge wrote")],
    size: Annotated[list[int], typer.Option(help="Texts of train; 0 for all")] = [50, 100, 200, 0],  # noqa: B006
    method: Annotated[list[str], typer.Option(help=" | ".join(METHODS))] = ["crf", "per-label"],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Trainings of each pipeline")] = 3,
    steps: Annotated[int, typer.Option(help="Training steps of each pipeline")] = 400,
    table: Annotated[Path | None, typer.Option(help="Static vectors that scripts.vectors has made")] = None,
    config: Annotated[Path, typer.Option(help="Config of the pipelines")] = Path("configs/cpu.cfg"),
    name: Annotated[str, typer.Option(help="Of the file in benchmarks/results")] = "crf",
) -> None:
    """Train all on all sizes, and write the table, whose F1 scores are medians and ranges of the seeds."""
    rows = []
    for corpus in corpora:
        there = len(texts_of(corpus / "train"))
        for texts in sorted({each if 0 < each < there else there for each in size}):
            for each in method:
                scores = [
                    measure(
                        corpus, trainer_of(each, Recipe(config, corpus, seed=seed, limit=texts, max_steps=steps), table)
                    )
                    for seed in range(1 if each == "crf" else seeds)
                ]
                f1, macro_f1, seconds, rates = zip(*scores, strict=True)
                spreads = [(median(values), min(values), max(values)) for values in (f1, macro_f1)]
                cells = spreads if len(scores) > 1 else [f1[0], macro_f1[0]]
                drawn = (None, None) if each == "crf" else (steps, seeds)
                begin = (corpus.parent.name, f"{texts:,}", METHODS[each], *drawn)
                rows.append((*begin, *cells, median(seconds), median(rates)))
                print(*rows[-1], sep="\t", flush=True)
    columns = {"corpus": "", "texts": "", "method": "", "steps": ",", "seeds": ",", "F1": ".3f", "macro F1": ".3f"}
    write_result(name, columns | {"CPU seconds of training": ",.0f", "words per second": ",.0f"}, rows)


def trainer_of(method: str, recipe: Recipe, table: Path | None) -> Callable[[Path], Predict]:
    """Make what trains in a folder."""
    if method == "crf":
        return partial(train_crf, recipe.corpus, recipe.limit)
    if method not in METHODS:
        raise SystemExit(f"--method {method}: give one of {', '.join(METHODS)}")
    recognizer: Recognizer = "ner" if method == "ner" else "per-label"
    vectors = table if method == "vectors" else None
    return partial(train_recognizer, replace(recipe, recognizer=recognizer, vectors=vectors))


if __name__ == "__main__":
    typer.run(main)
