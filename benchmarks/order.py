"""Which texts should be annotated next? F after a hundred more for each label, chosen in one order or another.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.order

Of train, 50 texts for each label, drawn by chance, are known; the other annotation is forgotten. Three pipelines learn
that, and choose 100 more texts for each label, whose annotation is known from then on. Then a pipeline is trained anew.
The corpora and their splits are those of `benchmarks.committee`; two of them have enough texts. Orders, by label:

- `chance`: at random;
- `least certain span`: as `export --format prodigy-by-label` orders them, by the first of the three;
- `entropy`: the sum of the tokens' entropies, by the first of the three;
- `disagreement`: the mean divergence (Kullback-Leibler) of the three from their mean, summed over the tokens (McCallum
  and Nigam, Employing EM and Pool-Based Active Learning for Text Classification, ICML 1998);
- `disagreement a token`: the same, divided by the number of tokens;
- `spans disagreed on`: how many spans one or two of the three find.

Trainings that are there, in benchmarks/out/committee, aren't repeated.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.committee import CONFIG, OUT, SPLITS, Member, make_corpus, read_texts, score, train_member
from benchmarks.forget import forgotten
from benchmarks.measure import Cell, write_result
from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.manifest import read_manifest
from labelwise.corpus.pipeline import load_pipeline
from labelwise.evaluate.predict import all_found, predict_each
from labelwise.export.docs import ExportDoc, worth
from labelwise.recognizer.per_label import decode
from labelwise.train.recipe import Recipe

Option = typer.Option
CORPORA = ("prodigy_jsonl", "wnut2020_wlp")
START, CHOSEN, SIZE, STEPS = 50, 100, 3, 200
COLUMNS = {"corpus": "", "order": "", "F": ".3f", "macro F": ".3f", "F of each": "", "words a label": ",.0f"}
Known = Mapping[str, set[str]]  # the texts that are annotated, by label


def at_random(seed: int, texts: Sequence[StoredDoc], members: Sequence[Member], labels: Sequence[str]) -> np.ndarray:
    """Draw numbers."""
    return np.random.default_rng(seed).random((len(texts), len(labels)))


def least_certain(texts: Sequence[StoredDoc], members: Sequence[Member], labels: Sequence[str]) -> np.ndarray:
    """Say how much there is to learn, as an export does."""
    nlp = load_pipeline(members[0].folder / "model")
    rows = []
    for stored, doc in predict_each(nlp, iter(texts), lambda doc: doc.text, len):
        scores = {(start, end, label): score for start, end, label, score in all_found(doc)}
        found = ExportDoc(stored.text, "", "", sorted(scores), scores, {}, predicted=True)
        rows.append([worth(found, label) for label in labels])
    return np.array(rows)


def by_tokens(
    measure: Callable[[np.ndarray], np.ndarray],
    of: Callable[[np.ndarray], np.ndarray],
    texts: Sequence[StoredDoc],
    members: Sequence[Member],
    labels: Sequence[str],
) -> np.ndarray:
    """Put what is measured of each token together for each text.

    measure (Callable): of the logarithms of probabilities, of the shape (pipelines, tokens, labels, 5).
    """
    log_p = np.stack([member.probabilities("train") for member in members])
    ends = np.cumsum([len(doc) for doc in texts])[:-1]
    return np.array([of(part) for part in np.split(measure(log_p), ends)])


def entropy(log_p: np.ndarray) -> np.ndarray:
    """Compute the entropy of the first pipeline's tags."""
    return -(np.exp(log_p[0]) * log_p[0]).sum(-1)


def divergence(log_p: np.ndarray) -> np.ndarray:
    """Compute how far the pipelines are from their mean, on average."""
    means = np.logaddexp.reduce(log_p) - np.log(len(log_p))
    return (np.exp(log_p) * (log_p - means)).sum(-1).mean(0)


def disputed(texts: Sequence[StoredDoc], members: Sequence[Member], labels: Sequence[str]) -> np.ndarray:
    """Count the spans that some of the pipelines find, and others don't."""
    lengths = [len(doc) for doc in texts]
    votes = [[set(found.rows()) for found in decode(member.probabilities("train"), lengths)] for member in members]
    counts = np.zeros((len(texts), len(labels)))
    for number, found in enumerate(zip(*votes, strict=True)):
        for _, _, label in set.union(*found) - set.intersection(*found):
            counts[number, label] += 1
    return counts


ORDERS: dict[str, Callable[..., np.ndarray]] = {
    "least certain span": least_certain,
    "entropy": partial(by_tokens, entropy, lambda part: part.sum(0)),
    "disagreement": partial(by_tokens, divergence, lambda part: part.sum(0)),
    "disagreement a token": partial(by_tokens, divergence, lambda part: part.mean(0)),
    "spans disagreed on": disputed,
}


def train(corpus: Path, known: Known, seed: int, folder: Path, *splits: Any) -> Member:
    """Train on what is known."""
    labels, texts = read_manifest(corpus)["labels"], [doc.text for doc in read_texts(corpus, "train")]
    unknown = {text: [label for label in labels if text not in known[label]] for text in texts}
    useless = {text for text, forgot in unknown.items() if len(forgot) == len(labels)}
    with forgotten(unknown, useless):
        return train_member(
            Recipe(CONFIG, corpus, seed=seed, max_steps=STEPS, overrides={"training.eval_frequency": STEPS}),
            folder,
            splits=(*splits, *SPLITS),
        )


def run(corpus: Path, seed: int) -> dict[str, tuple[Member, float]]:
    """Annotate a little, choose in each order, and annotate that; with the words that are annotated for a label."""
    labels, texts = read_manifest(corpus)["labels"], read_texts(corpus, "train")
    complete = {label: [doc.text for doc in texts if label not in doc.annotation.uncovered] for label in labels}
    known = {label: set(random.Random(f"{seed}/{label}").sample(complete[label], START)) for label in labels}
    folder = corpus.parent / "order"
    members = [train(corpus, known, SIZE * seed + n, folder / f"start-{seed}-{n}", "train") for n in range(SIZE)]
    found = {"none yet": (members[0], 0.0)}
    orders: dict[str, Callable[..., np.ndarray]] = {"chance": partial(at_random, seed), **ORDERS}
    for name, order in orders.items():
        numbers = order(texts, members, labels)
        more, words = dict(known), 0
        for place, label in enumerate(labels):
            pool = set(complete[label]) - known[label]
            ranked = [number for number in np.argsort(-numbers[:, place], kind="stable") if texts[number].text in pool]
            more[label] = known[label] | {texts[number].text for number in ranked[:CHOSEN]}
            words += sum(len(texts[number]) for number in ranked[:CHOSEN])
        member = train(corpus, more, seed, folder / f"{name.replace(' ', '-')}-{seed}")
        found[name] = (member, words / len(labels))
    return found


def main(
    assets: Annotated[Path, Option(help="Folder with the public corpora")] = Path("assets"),
    corpus: Annotated[list[str], Option(help="Names of folders")] = list(CORPORA),  # noqa: B006
    seeds: Annotated[int, Option(help="Each with other texts to begin with")] = 3,
) -> None:
    """Train, unless that is done, and score."""
    rows: list[list[Cell]] = []
    found: dict[str, dict[str, list[tuple[Member, float]]]] = {name: {} for name in corpus}
    for seed in range(seeds):
        for name in corpus:
            for order, chosen in run(make_corpus(name, assets), seed).items():
                found[name].setdefault(order, []).append(chosen)
    for name, orders in found.items():
        for order, made in orders.items():
            scores = [score(OUT / name / "corpus", [member]) for member, _ in made]
            each = " ".join(f"{one.f:.3f}" for one in scores)
            figures = (mean(one.f for one in scores), mean(one.macro for one in scores), each)
            rows.append([name, order, *figures, mean(words for _, words in made)])
    write_result("order", COLUMNS, rows)


if __name__ == "__main__":
    typer.run(main)
