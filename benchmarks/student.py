"""Does a pipeline learn from raw texts what a committee thinks of them?

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.student

The annotation of a half of train, by hash, is forgotten. Three pipelines learn the other half; what they give the tags'
probabilities of, on average, is a soft target wherever a label isn't known, in a half of train, or, of Prodigy sets, in
the other set. Gold is learned as always. The corpora and their splits are those of `benchmarks.committee`.

- `one`, `three`: pipelines of a half, by themselves and as a committee; their seeds differ;
- `student of three`: one pipeline of all texts, with the soft targets of the committee;
- `student of one`: with those of the first of the three.

All have as many steps. Trainings that are there, in benchmarks/out/committee, aren't repeated.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Annotated, Any
from unittest.mock import patch

import numpy as np
import typer

from benchmarks.committee import CONFIG, CORPORA, OUT, SPLITS, Member, make_corpus, read_texts, score, train_member
from benchmarks.forget import forgotten
from benchmarks.measure import Cell, write_result
from labelwise.corpus.manifest import read_manifest
from labelwise.recognizer.per_label import TAGS, UNKNOWN, PerLabelRecognizer, Targets, log_softmax
from labelwise.train.reader import fold_of
from labelwise.train.recipe import Recipe

Option = typer.Option
SIZE = 3  # pipelines in a committee
STUDENTS = {"student of three": SIZE, "student of one": 1}
COLUMNS = {
    **{"corpus": "", "pipelines": "", "F": ".3f", "macro F": ".3f", "F of each": ""},
    **{"CPU seconds to train": ",.0f", "words per CPU second": ",.0f"},
}


class SoftTargets(Targets):
    """What is known of a text, and what others think of it: probabilities of the shape (tokens, labels, 5)."""

    soft: np.ndarray


@contextmanager
def taught(corpus: Path, teachers: Sequence[Member]) -> Iterator[None]:
    """Make a block in which trainings learn teachers' mean probabilities where nothing is known."""
    texts = read_texts(corpus, "train")
    means = np.mean([np.exp(one.probabilities("train")) for one in teachers], axis=0)
    ends = np.cumsum([len(doc) for doc in texts])[:-1]
    soft = {doc.text: part for doc, part in zip(texts, np.split(means, ends), strict=True)}
    targets: Callable = PerLabelRecognizer.targets
    loss_of: Callable = PerLabelRecognizer._loss_of

    def soft_targets(self: PerLabelRecognizer, examples: Any) -> list[SoftTargets]:
        """Tell what each example teaches, with what the teachers think."""
        found = []
        for eg, known in zip(examples, targets(self, examples), strict=True):
            made = SoftTargets(*known)
            made.soft = soft[eg.predicted.text]
            found.append(made)
        return found

    def soft_loss(self: PerLabelRecognizer, targets: Sequence[Any], logits: list[Any]) -> tuple[float, list[Any]]:
        """Compute the loss, and its gradient, with the cross-entropy of what isn't known."""
        loss, gradient = loss_of(self, targets, logits)
        for known, part, grad in zip(targets, logits, gradient, strict=True):
            free = known.tags == UNKNOWN
            log_p = log_softmax(part.reshape(len(part), -1, TAGS))[free]
            loss -= float((known.soft[free] * log_p).sum())
            grad.reshape(len(part), -1, TAGS)[free] += np.exp(log_p) - known.soft[free]
        return loss, gradient

    with (
        patch.object(PerLabelRecognizer, "targets", soft_targets),
        patch.object(PerLabelRecognizer, "_loss_of", soft_loss),
    ):
        yield


def recipe_of(corpus: Path, seed: int, steps: int, leave_out: str = "") -> Recipe:
    """Describe a training."""
    overrides = {"training.eval_frequency": steps, "corpora.train.leave_out": leave_out}
    return Recipe(CONFIG, corpus, seed=seed, max_steps=steps, overrides=overrides)


def run(corpus: Path, number: int, steps: int) -> dict[str, list[Member]]:
    """Train a committee of a half, and its students."""
    labels = read_manifest(corpus)["labels"]
    raw = [doc.text for doc in read_texts(corpus, "train") if fold_of(doc.text, 2)]
    folder = corpus.parent / "half"
    found = {
        "three": [
            train_member(recipe_of(corpus, seed, steps, "1/2"), folder / f"one-{seed}", ("train", *SPLITS))
            for seed in range(SIZE * number, SIZE * (number + 1))
        ]
    }
    for name, count in STUDENTS.items():
        with forgotten(dict.fromkeys(raw, labels)), taught(corpus, found["three"][:count]):
            student = train_member(recipe_of(corpus, number, steps), folder / f"{name.replace(' ', '-')}-{number}")
            found[name] = [student]
    return found


def main(
    assets: Annotated[Path, Option(help="Folder with the public corpora")] = Path("assets"),
    corpus: Annotated[list[str], Option(help="Names of folders")] = list(CORPORA),  # noqa: B006
    committees: Annotated[int, Option(help="Each with two students")] = 3,
    steps: Annotated[int, Option(help="Updates of each pipeline")] = 300,
) -> None:
    """Train, unless that is done, and score."""
    rows: list[list[Cell]] = []
    groups: dict[str, dict[str, list[list[Member]]]] = {name: {} for name in corpus}
    for number in range(committees):
        for name in corpus:
            for kind, members in run(make_corpus(name, assets), number, steps).items():
                groups[name].setdefault(kind, []).append(members)
                if kind == "three":
                    groups[name].setdefault("one", []).extend([member] for member in members)
    for name, kinds in groups.items():
        for kind in ("one", "three", *STUDENTS):
            scores = [score(OUT / name / "corpus", group) for group in kinds[kind]]
            members = [member for group in kinds[kind] for member in group]
            rows.append(
                [
                    *(name, kind, mean(one.f for one in scores), mean(one.macro for one in scores)),
                    " ".join(f"{one.f:.3f}" for one in scores),
                    mean(sum(member.trained for member in group) for group in kinds[kind]),
                    mean(member.words / member.predicted for member in members) / len(kinds[kind][0]),
                ]
            )
    write_result("student", COLUMNS, rows)


if __name__ == "__main__":
    typer.run(main)
