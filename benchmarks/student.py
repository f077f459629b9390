"""Does a pipeline learn from raw texts what a committee thinks of them?

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.student

A half of train, by hash, has lost its annotation, and is raw text. Three pipelines learn the other half; a student
learns that, too, and what they think of labels that aren't known, be it in raw texts or, of Prodigy sets, in the other
set's. The corpora and their splits are those of `benchmarks.committee`.

- `one`, `three`: pipelines of a half, by themselves and as a committee; their seeds differ;
- `student of three`: one pipeline of all texts, with the soft targets of the committee;
- `student of one`: with those of the first of the three.

All have as many steps. Trainings that are there, in benchmarks/out/committee, aren't repeated.
"""

from functools import partial
from pathlib import Path
from statistics import mean
from typing import Annotated

import msgspec
import typer

from benchmarks.committee import CONFIG, CORPORA, OUT, Member, make_corpus, read_member, read_texts, score, train_member
from benchmarks.forget import forgotten
from benchmarks.measure import Cell, write_result
from labelwise.train.committee import join
from labelwise.train.reader import fold_of
from labelwise.train.recipe import Recipe
from labelwise.train.student import train_student

Option = typer.Option
SIZE = 3  # pipelines in a committee
STUDENTS = {"student of three": SIZE, "student of one": 1}
COLUMNS = {
    **{"corpus": "", "pipelines": "", "F": ".3f", "macro F": ".3f", "F of each": ""},
    **{"CPU seconds to train": ",.0f", "words per CPU second": ",.0f"},
}


def recipe_of(corpus: Path, seed: int, steps: int) -> Recipe:
    """Describe a training."""
    return Recipe(CONFIG, corpus, seed=seed, max_steps=steps, overrides={"training.eval_frequency": steps})


def run(corpus: Path, number: int, steps: int) -> dict[str, list[Member]]:
    """Train a committee of a half, and its students."""
    texts = [doc.text for doc in read_texts(corpus, "train")]
    raw = {text for text in texts if fold_of(text, 2)}
    folder = corpus.parent / "half"
    folder.mkdir(exist_ok=True)
    file = folder / "raw.jsonl"
    file.write_bytes(b"\n".join(msgspec.json.encode({"text": text}) for text in texts if text in raw))
    ones = [folder / f"one-{seed}" for seed in range(SIZE * number, SIZE * (number + 1))]
    with forgotten({}, raw):
        for seed, one in enumerate(ones, SIZE * number):
            train_member(recipe_of(corpus, seed, steps), one)
        found = {"three": [read_member(one) for one in ones]}
        for name, count in STUDENTS.items():
            out = folder / f"{name.replace(' ', '-')}-{number}"
            teacher = ones[0] / "model"
            if count > 1:
                teacher = out / "teacher"
                out.mkdir(exist_ok=True)
                join([one / "model" for one in ones]).to_disk(teacher)
            train = partial(train_student, teacher=teacher, raw=file)
            found[name] = [train_member(recipe_of(corpus, number, steps), out, train)]
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
