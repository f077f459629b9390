"""How many wrong tags does the check find, and does it help to put them right?

    python -m benchmarks.check_labels --steps 400

A demo corpus is annotated with a share of wrong tags of known kinds (`--noise`). The check ranks what it finds; this
prints how many of the wrong tags of each kind its first rows are about. Then the check's own tasks are annotated again,
label by label, those that as many first rows are about as there are wrong tags: a script answers as an annotator would
who knows the policy, the answers are added to the data sets, and the merge takes the newer ones. A pipeline is trained
on what the annotators made, on that, and on what was never wrong. All are evaluated on texts without wrong tags.
"""

import json
import shutil
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import typer

from benchmarks.measure import Cell, measure, project_with, write_result
from labelwise.demo.corpus import add_noise, make_doc

OUT = Path("benchmarks/out/check_labels")
CONFIG = "configs/cpu.cfg"
HELD_OUT = 100_000  # number of the first document of the test texts
Span = tuple[int, int, str]


def find_planted(docs: int, noise: float) -> dict[str, list[tuple[str, set[Span], set[Span]]]]:
    """List the wrong tags of each document: the kind, what is there, and what should be."""
    planted: dict[str, list[tuple[str, set[Span], set[Span]]]] = {}
    for number in range(docs):
        doc = make_doc(number)
        right, wrong = set(doc.spans), set(add_noise(doc, noise).spans)
        found = planted.setdefault(doc.path, [])
        missing, extra = right - wrong, wrong - right
        for span in sorted(missing):
            instead = {other for other in extra if other[0] < span[1] and span[0] < other[1]}
            kind = "left out" if not instead else ""
            kind = kind or ("wrong label" if any(other[:2] == span[:2] for other in instead) else "wrong boundaries")
            found.append((kind, instead, {span}))
            extra -= instead
        found += [("spurious", {span}, set()) for span in sorted(extra)]
    return planted


def read_rows(file: Path) -> list[tuple[str, Span | None, Span | None]]:
    """Read findings: the document, what is there, and what is proposed."""
    _, *rows = map(json.loads, file.read_text(encoding="utf8").splitlines())
    return [(row["doc"], *(row[side] and tuple(row[side]) for side in ("current", "proposed"))) for row in rows]


def count_found(
    planted: dict[str, list[tuple[str, set[Span], set[Span]]]], rows: list[tuple[str, Span | None, Span | None]]
) -> tuple[Counter[str], Counter[str]]:
    """Count the wrong tags of each kind, and those of them that rows are about."""
    there: Counter[str] = Counter()
    found: Counter[str] = Counter()
    by_doc: dict[str, set[Span]] = {}
    for doc, current, proposed in rows:
        by_doc.setdefault(doc, set()).update(span for span in (current, proposed) if span)
    for doc, mistakes in planted.items():
        for kind, wrong, right in mistakes:
            there[kind] += 1
            found[kind] += bool((wrong | right) & by_doc.get(doc, set()))
    return there, found


def make_corpus(name: str, docs: dict[str, tuple[str, set[Span]]], split: str) -> Path:
    """Write brat documents, and convert them; returns the declaration."""
    folder = OUT / name / "brat"
    for path, (text, spans) in docs.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf8", newline="")
        lines = [f"T{n}\t{label} {start} {end}\t{text[start:end]}\n" for n, (start, end, label) in enumerate(spans, 1)]
        file.with_suffix(".ann").write_text("".join(lines).replace("\r", " "), encoding="utf8", newline="")
    measure("scripts.convert_brat", str(folder), str(OUT / name / "tasks"), "--prefix", f"{name}-", "--split", split)
    return OUT / name / "tasks" / "datasets.yml"


def annotate_again(
    tasks: Path, datasets: Path, out: Path, wanted: set[tuple[str, str]], right: dict[str, set[Span]]
) -> int:
    """Copy data sets, and add to each the check's tasks about wanted documents and labels, answered rightly.

    RETURNS (int): the number of answers.
    """
    shutil.copytree(datasets, out)
    answered = 0
    for file in sorted(tasks.glob("*.jsonl")):
        label = file.stem
        with (out / file.name).open("a", encoding="utf8") as answers:
            for line in file.read_text(encoding="utf8").splitlines():
                task = json.loads(line)
                doc = task["meta"].get("doc")
                if (doc, label) in wanted:
                    spans = sorted(span for span in right[doc] if span[2] == label)
                    task["spans"] = [{"start": start, "end": end, "label": name} for start, end, name in spans]
                    answers.write(json.dumps(task) + "\n")
                    answered += 1
    return answered


def merge(name: str, *declarations: Path) -> Path:
    """Merge to a corpus."""
    options = project_with(OUT / name, test_ratio=0)
    measure("scripts.merge", *map(str, declarations), str(OUT / name / "corpus"), *options)
    return OUT / name / "corpus"


def train(corpus: Path, name: str, seed: int, steps: int) -> float:
    """Train, and evaluate on the texts without wrong tags; returns F."""
    model, scores = OUT / f"{name}-{seed}", OUT / f"{name}-{seed}.json"
    options = ["--curve", str(OUT / "curve.tsv"), "--max-steps", str(steps), "--seed", str(seed), "--workers", "2"]
    measure("scripts.train", CONFIG, str(corpus), str(model), *options)
    measure("scripts.evaluate", str(model), str(corpus / "test"), str(scores))
    return json.loads(scores.read_text())["all_gold"]["f"]


def main(
    docs: Annotated[int, typer.Option(help="Documents with wrong tags")] = 400,
    noise: Annotated[float, typer.Option(help="Share of wrong tags")] = 0.03,
    folds: Annotated[int, typer.Option(help="Of the check")] = 3,
    steps: Annotated[int, typer.Option(help="Updates of each pipeline")] = 400,
    seeds: Annotated[int, typer.Option(help="Trainings before and after, with the seeds 0, 1, ...; 0 for none")] = 3,
) -> None:
    """Plant, check, count, fix, and train."""
    shutil.rmtree(OUT, ignore_errors=True)
    made = [make_doc(number) for number in range(docs)]
    texts = {doc.path: doc.text for doc in made}
    spans: dict[str, dict[str, set[Span]]] = {
        "clean": {doc.path: set(doc.spans) for doc in made},
        "noisy": {doc.path: set(add_noise(doc, noise).spans) for doc in made},
    }
    tests = [make_doc(HELD_OUT + number) for number in range(100)]
    held_out = make_corpus("test", {doc.path: (doc.text, set(doc.spans)) for doc in tests}, "test")
    corpora: dict[str, Path] = {}

    def build(name: str) -> None:
        """Make a corpus of the annotation of that name, with the test texts."""
        declared = make_corpus(name, {path: (texts[path], spans[name][path]) for path in texts}, "auto")
        corpora[name] = merge(name, declared, held_out)

    build("noisy")
    (OUT / "check.yml").write_text(f"check: {{folds: {folds}, steps: {steps}}}\n")
    options: list[Any] = ["--out", OUT / "check"]
    if folds:
        train(corpora["noisy"], "noisy", 0, steps)
        options += ["--config", CONFIG, "--project", OUT / "check.yml", "--model", OUT / "noisy-0", "--workers", 2]
    measure("scripts.check_labels", *map(str, [corpora["noisy"], *options]))
    planted = find_planted(docs, noise)
    wrong = sum(map(len, planted.values()))
    rows = [row for row in read_rows(OUT / "check" / "findings.jsonl") if row[0] in texts]
    first = [factor * wrong for factor in (1, 2, 4)]
    counts = {f"first {number:,} rows": count_found(planted, rows[:number]) for number in first}
    there, _ = next(iter(counts.values()))
    table: list[list[Cell]] = [
        [kind, of, *(found[kind] for _, found in counts.values())] for kind, of in sorted(there.items())
    ]
    table.append(["all", wrong, *(found.total() for _, found in counts.values())])
    write_result("check_planted", {"wrong tags": "", "of": ",", **dict.fromkeys(counts, ",")}, table)
    wanted = {(doc, span[2]) for doc, *found in rows[:wrong] for span in found if span}
    answered = annotate_again(
        OUT / "check" / "tasks", OUT / "noisy" / "tasks", OUT / "fixed" / "tasks", wanted, spans["clean"]
    )
    corpora["fixed"] = merge("fixed", OUT / "fixed" / "tasks" / "datasets.yml", held_out)
    build("clean")
    named = {"noisy": "F as it was", "fixed": "F after that", "clean": "F without a wrong tag"}
    columns = {"wrong tags": ".0%", "tasks annotated again": ",", "of": ",", **dict.fromkeys(named.values(), ".3f")}
    row: list[Cell] = [noise, answered, docs * len({label for _, label in wanted})]
    for name in named if seeds else ():
        scores = [train(corpora[name], name, seed, steps) for seed in range(seeds)]
        row.append((mean(scores), min(scores), max(scores)))
    if seeds:
        write_result("check_repaired", columns, [row])


if __name__ == "__main__":
    typer.run(main)
