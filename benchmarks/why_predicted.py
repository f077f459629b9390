"""Do predictions depend on the annotated spans that `why --predicted` names more than on others?

    python -m benchmarks.why_predicted --corpus assets/prodigy_jsonl/food_data.jsonl

A group is GROUP predicted spans of different held-out texts. Each group trains again from the same random weights, in
the same order of texts, while some annotated spans' tokens are unknown for their label (docs/benchmarks.md):

    named     the ten annotated spans that speak most for each prediction of the group
    random    as many other spans, of the same labels
    same words    as many spans, of the same labels, with the same words as a prediction, or else most words in common
    against   the ten that speak most against each prediction, which no command prints (the first two seeds)
    random against   as many others

Labels with fewer than MIN_SPANS annotated spans are left out: few others could be drawn. Rows are kept, so an
interrupted run continues: 99 trainings of 150 steps took 24 minutes of CPU time, without "same words".
"""

import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Annotated, Any
from unittest.mock import patch

import numpy as np
import typer
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from benchmarks.measure import Cell, mean_interval, write_result
from benchmarks.public import Task, read_tasks
from benchmarks.warm_start import merge
from labelwise.base.text import text_key
from labelwise.check.findings import OutOfFold
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.manifest import find_partitions
from labelwise.corpus.pipeline import load_pipeline
from labelwise.train import reader
from labelwise.train.train_pipeline import train_pipeline
from labelwise.train.training_config import TrainingConfig, default_config
from labelwise.why.predicted import find_recognizer, learned_spans, rank
from spacy_per_label import get_known, set_known
from spacy_per_label.decode import decode, log_odds
from spacy_per_label.influence import span_gradients
from spacy_per_label.known import key_of as span_key

STEPS = 150  # of each training
WORDS = 8_000  # of train
DEV = 20  # texts of dev
GROUP, GROUPS = 10, 3  # predictions of a group, and groups of a seed
MIN_SPANS = 100  # annotated spans of a label in train, so there are others
ARMS = ("named", "random", "same words", "against", "random against")
COMPARED = (ARMS[:2], ("same words", "random"), ("named", "same words"), ARMS[3:])
COLUMNS = {"corpus": "", "spans": "", "others": "", "groups": ",", "unknown spans": ",.0f", "log-odds": ".2f"}
COLUMNS |= {"without them": ".2f", "without others": ".2f", "difference": "+.2f", "from": "+.2f", "to": "+.2f"}

Span = tuple[str, int, int, str]  # text's key, start and end in characters, label
Place = tuple[str, int, int, int]  # text, start and end in tokens, label's number


def split(corpus: Path, folder: Path, seed: int) -> tuple[Path, list[str]]:
    """Merge a seed's texts of a corpus.

    RETURNS (tuple): the merged corpus, and the texts of test, which is not in it.
    """
    train_tasks, test = read_tasks(corpus, folder)
    pool = [*{task["text"]: task for task in train_tasks}.values()]
    random.Random(seed).shuffle(pool)
    dev, train, words = pool[:DEV], list[Task](), 0
    for task in pool[DEV:]:
        if words < WORDS:
            train.append(task)
            words += len(task["text"].split())
    labels = sorted({span["label"] for task in train for span in task["spans"]})
    return merge({"train": train, "dev": dev}, labels, folder / "merged"), [task["text"] for task in test]


def train(corpus: Path, out: Path, seed: int, unknown: Sequence[Span] = ()) -> float:
    """Train `cpu`, with the tokens of some annotated spans unknown for their label; return CPU seconds."""
    hidden: dict[str, set[tuple[int, int, str]]] = {}
    for key, start, end, label in unknown:
        hidden.setdefault(key, set()).add((start, end, label))
    make = reader.make_reference

    def hide(stored: StoredDoc, vocab: Vocab) -> Doc:
        doc, spans = make(stored, vocab), hidden.get(text_key(stored.text).hex(), set())
        known = get_known(doc)
        gold = [span for span in known.gold if span_key(span) not in spans]
        assert len(gold) == len(known.gold) - len(spans)
        unaligned = [*known.unaligned, *spans]
        set_known(doc, gold=gold, rejected=known.rejected, coverage=known.coverage, unaligned=unaligned)
        return doc

    began = time.process_time()
    overrides = {"corpora.train.max_words": 0, "training.eval_frequency": STEPS}
    config = TrainingConfig(default_config("cpu"), corpus, seed=seed, max_steps=STEPS, overrides=overrides)
    with patch.object(reader, "make_reference", hide):
        train_pipeline(config, out, out.with_suffix(".tsv"))
    return time.process_time() - began


def measure(nlp: Language, places: Sequence[Place]) -> list[float]:
    """Compute the log-odds of spans' marginals, each with its text."""
    _, ner = find_recognizer(nlp)
    odds = []
    for text, start, end, label in places:
        log_p = ner.log_probabilities([nlp(text)])  # (tokens, labels, 5)
        ways = OutOfFold(log_p, decode(log_p, [len(log_p)])[0], range(len(ner.labels)))
        odds.append(float(log_odds(np.array(ways.probability((start, end, label))))))
    return odds


def choose(nlp: Language, texts: Sequence[str], counts: Mapping[str, int], seed: int) -> list[list[Place]]:
    """Choose predicted spans at random, one per text, in groups.

    counts (Mapping[str, int]): annotated spans of each label in train.
    """
    rng, chosen = random.Random(seed), list[Place]()
    _, ner = find_recognizer(nlp)
    for text in rng.sample(texts, len(texts)):
        spans = [span for span in nlp(text).ents if counts[span.label_] >= MIN_SPANS]
        if spans:
            span = rng.choice(spans)
            chosen.append((text, span.start, span.end, ner.labels.index(span.label_)))
        if len(chosen) == GROUP * GROUPS:
            break
    return [chosen[at : at + GROUP] for at in range(0, GROUP * GROUPS, GROUP)]


def name_spans(nlp: Language, corpus: Path, places: Sequence[Place], sign: int) -> list[Span]:
    """Return the annotated spans that speak most for any of some predictions; against, if `sign` is -1."""
    _, ner = find_recognizer(nlp)
    gradients = np.concatenate(
        [span_gradients(ner, [nlp(text)], [(start, end, label)]) for text, start, end, label in places]
    )
    ranked = rank(nlp, corpus, [label for *_, label in places], sign * gradients)
    return sorted({(span.key, span.start, span.end, span.label) for spans in ranked for span in spans})


def draw_others(named: Sequence[Span], every: Sequence[Span], rng: random.Random) -> list[Span]:
    """Draw other spans of each label, in the number of named ones if possible."""
    drawn, without = [], {*named}
    for label, count in sorted(Counter(label for *_, label in named).items()):
        others = [span for span in every if span[3] == label and span not in without]
        drawn += rng.sample(others, min(count, len(others)))
    return drawn


def find_alike(named: Sequence[Span], places: Sequence[Place], texts: Mapping[Span, str], nlp: Language) -> list[Span]:
    """Return as many annotated spans of each label as `named`, first those with words most like a prediction's.

    texts (Mapping[Span, str]): annotated spans, with their text.
    """
    _, ner = find_recognizer(nlp)
    words = {span: {token.lower_ for token in nlp.make_doc(text)} for span, text in texts.items()}
    ranks: dict[Span, int] = {}
    for text, start, end, number in places:
        span_words = {token.lower_ for token in nlp.make_doc(text)[start:end]}
        spans = [span for span in texts if span[3] == ner.labels[number]]
        spans.sort(key=lambda span: (-len(span_words & words[span]) / len(span_words | words[span]), span))
        ranks |= {span: min(place, ranks.get(span, place)) for place, span in enumerate(spans)}
    in_order, alike = sorted(ranks, key=lambda span: (ranks[span], span)), list[Span]()
    for label, count in sorted(Counter(label for *_, label in named).items()):
        alike += [span for span in in_order if span[3] == label][:count]
    return alike


def run_seed(corpus: Path, folder: Path, seed: int, arms: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield a row for each training; read kept rows.

    arms (Sequence[str]): arms to train, the first of which names spans; see `ARMS`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows_file, base = folder / "rows.jsonl", folder / "base"
    rows = (
        [json.loads(line) for line in rows_file.read_text(encoding="utf8").splitlines()] if rows_file.exists() else []
    )
    rows = [row for row in rows if row["arm"] in ("base", *arms)]
    yield from rows
    done = {(row["group"], row["arm"]) for row in rows}
    if len(done) == 1 + GROUPS * len(arms):
        return
    merged, texts = folder / "merged/corpus", folder / "texts.json"
    if not texts.exists():
        merged, held_out = split(corpus, folder, seed)
        texts.write_text(json.dumps(held_out), encoding="utf8")
    seconds = 0.0 if base.exists() else train(merged, base, seed)
    nlp = load_pipeline(base)
    _, ner = find_recognizer(nlp)
    stored = [doc for partition in find_partitions(merged / "train") for doc in read_stored_docs(partition)]
    learned = learned_spans(stored, ner.labels, range(len(ner.labels)))
    texts_of = {(doc.key, start, end, label): doc.text[start:end] for _, doc, start, end, label in learned}
    every = [*texts_of]
    groups = choose(nlp, json.loads(texts.read_bytes()), Counter(label for *_, label in every), seed)

    def keep(row: dict[str, Any]) -> dict[str, Any]:
        with rows_file.open("a", encoding="utf8") as file:
            file.write(json.dumps({"corpus": corpus.stem, "seed": seed, **row}) + "\n")
        return {"corpus": corpus.stem, "seed": seed, **row}

    if (-1, "base") not in done:
        yield keep({"group": -1, "arm": "base", "seconds": seconds, "texts": len(stored), "annotated": len(every)})
    for number, places in enumerate(groups):
        before = measure(nlp, places)
        named = name_spans(nlp, merged, places, 1 if arms[0] == "named" else -1)
        others = draw_others(named, every, random.Random(f"{seed}/{number}/{arms[0]}"))
        alike = find_alike(named, places, texts_of, nlp) if "same words" in arms else []
        for arm, unknown in zip(arms, (named, others, alike), strict=False):
            if (number, arm) not in done:
                out = folder / "again"
                seconds = train(merged, out, seed, unknown)
                after = measure(load_pipeline(out), places)
                yield keep(
                    {"group": number, "arm": arm, "seconds": seconds}
                    | {"unknown": len(unknown), "before": before, "after": after}
                )


def compare(name: str, rows: Sequence[dict[str, Any]], arm: str, other: str) -> list[Cell]:
    """Make the row that compares two arms."""
    by_group = {(row["corpus"], row["seed"], row["group"], row["arm"]): row for row in rows}
    groups = [key[:3] for key in by_group if key[3] == arm]
    pairs = [(by_group[*group, arm], by_group[*group, other]) for group in groups]
    before, after, without_others = (
        [mean(row[side][key]) for row in pairs] for side, key in ((0, "before"), (0, "after"), (1, "after"))
    )
    differences = [drop - two for drop, two in zip(after, without_others, strict=True)]
    size = mean(row["unknown"] for row, _ in pairs)
    means = [mean(values) for values in (before, after, without_others)]
    return [name, arm, other, len(groups), size, *means, *mean_interval(differences)]


def main(
    corpus: Annotated[list[Path], typer.Option(help="Folders of brat documents, or files of Prodigy tasks")],
    folder: Annotated[Path, typer.Option(help="Folder for corpora and pipelines")] = Path("benchmarks/out/why"),
    seeds: Annotated[int, typer.Option(help="Repetitions, each with other texts")] = 3,
    against: Annotated[bool, typer.Option(help="Also without the spans that speak against a prediction")] = True,
    result: Annotated[str, typer.Option(help="Name of the result")] = "why_predicted",
) -> None:
    """Train all, and write the table."""
    rows: list[dict[str, Any]] = []
    order = [*product([ARMS[:3]], range(seeds), corpus)]
    order += product([ARMS[3:]], range(seeds)[:2], corpus) if against else []
    for arms, seed, place in order:
        for row in run_seed(place, folder / f"{place.stem}-{seed}", seed, arms):
            if row["arm"] != "base" or arms == ARMS[:3]:
                rows.append(row)
                print({key: value for key, value in row.items() if key not in ("before", "after")}, flush=True)
    again = [row for row in rows if row["arm"] != "base"]
    by_corpus = {place.stem: [row for row in again if row["corpus"] == place.stem] for place in corpus}
    table = [
        compare(name, rows, arm, other)
        for arm, other in COMPARED[: None if against else 3]
        for name, rows in {**by_corpus, "all": again}.items()
    ]
    minutes = sum(row["seconds"] for row in rows) / 60
    note = f"{len(rows)} trainings of {STEPS} steps, {minutes:.0f} minutes of CPU time"
    write_result(result, COLUMNS, table, note=note)


if __name__ == "__main__":
    typer.run(main)
