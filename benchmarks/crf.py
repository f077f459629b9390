"""The CRF baseline of `f1` (python-crfsuite), on the same Docs as the recognizers; dev chooses its two penalties."""

import time
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pycrfsuite

from labelwise.base.counts import count_spans, score_table
from labelwise.corpus.docbin_reader import BEGIN, INSIDE, StoredDoc

L1, L2 = (0.0, 0.1), (0.1, 1.0)  # penalties of weights: the best pair on dev is taken
ITERATIONS = 150
Entities = set[tuple[int, int, str]]  # start and end in tokens, and the label


def features_of(words: list[str]) -> list[list[str]]:
    """Return each token's features: its own, of two neighbors on each side, and of pairs of neighbors."""
    forms = [forms_of(word) for word in words]
    lowered = ["", *(word.lower() for word in words), ""]
    listed = []
    for place, word in enumerate(words):
        features = ["bias", *forms[place], *(f"tri={gram}" for gram in trigrams(word))]
        for offset in (-2, -1, 1, 2):
            there = place + offset
            features += [f"{offset}:{form}" for form in forms[there]] if 0 <= there < len(words) else [f"{offset}:none"]
        features += [
            f"{name}={first}|{other}"
            for name, (first, other) in zip("ln", pairwise(lowered[place : place + 3]), strict=True)
        ]
        listed.append(features)
    return listed


def forms_of(word: str) -> list[str]:
    """Return a word, its shape, and its first and last one to four characters."""
    lowered = word.lower()
    kinds = ("X" if sign.isupper() else "x" if sign.isalpha() else "d" if sign.isdigit() else sign for sign in word[:8])
    affixes = [f"{name}={part}" for n in range(1, 5) for name, part in (("pre", lowered[:n]), ("suf", lowered[-n:]))]
    return [f"lower={lowered}", f"word={word}", f"shape={''.join(kinds)}", *affixes]


def trigrams(word: str) -> list[str]:
    """Return the trigrams of a word with its limits."""
    limited = f"<{word.lower()}>"
    return [limited[start : start + 3] for start in range(len(limited) - 2)]


def tags_of(stored: StoredDoc) -> list[str]:
    """Return BIO tags of a text's entities."""
    begins = {BEGIN: "B", INSIDE: "I"}
    pairs = zip(stored.iob.tolist(), stored.labels.tolist(), strict=True)
    return [f"{begins[iob]}-{stored.strings[label]}" if iob in begins else "O" for iob, label in pairs]


def entities_of(tags: list[str]) -> Entities:
    """Decode BIO tags; an I that continues no entity of its label begins one."""
    entities, start = set(), 0
    for place, (before, tag) in enumerate(pairwise(["O", *tags, "O"])):
        label = before[2:]
        if not label or tag != f"I-{label}":
            if label:
                entities.add((start, place, label))
            start = place
    return entities


class Crf(NamedTuple):
    """The CRF with the best penalties on dev.

    seconds (float): CPU seconds of its training.
    penalties (str): L1 and L2.
    """

    find: Callable[[StoredDoc], Entities]
    seconds: float
    penalties: str


def train_crf(texts: Sequence[StoredDoc], dev: Sequence[StoredDoc], file: Path) -> Crf:
    """Train a CRF with each pair of penalties; return the best one on dev.

    file (Path): prefix of the CRFs' files.
    """
    began = time.process_time()
    rows = [(features_of(words_of(stored)), tags_of(stored)) for stored in texts]
    labels = sorted({tag[2:] for stored in (*texts, *dev) for tag in tags_of(stored)} - {""})
    read = time.process_time() - began
    dev_rows = [(features_of(words_of(stored)), entities_of(tags_of(stored))) for stored in dev]
    best, chosen = -1.0, (pycrfsuite.Tagger(), 0.0, "")
    for c1, c2 in product(L1, L2):
        began = time.process_time()
        trainer = pycrfsuite.Trainer(verbose=False, params={"c1": c1, "c2": c2, "max_iterations": ITERATIONS})
        for features, tags in rows:
            trainer.append(features, tags)
        trainer.train(f"{file}.{c1}.{c2}")
        seconds = read + time.process_time() - began
        tagger = pycrfsuite.Tagger()
        tagger.open(f"{file}.{c1}.{c2}")
        predictions = [(entities_of(tagger.tag(features)), gold) for features, gold in dev_rows]
        score = (
            score_table(np.sum([count_spans(gold, predicted, labels) for predicted, gold in predictions], 0), labels).f
            or 0.0
        )
        if score > best:
            best, chosen = score, (tagger, seconds, f"L1 {c1}, L2 {c2}")
    tagger, seconds, penalties = chosen
    return Crf(lambda stored: entities_of(tagger.tag(features_of(words_of(stored)))), seconds, penalties)


def words_of(stored: StoredDoc) -> list[str]:
    """Return a text's tokens."""
    return [stored.strings[word] for word in stored.words.tolist()]
