"""What labelwise guarantees, a sentence each; tests carry its name: `@pytest.mark.guarantee(NAME)`.

`python -m tests.guarantees` writes docs/guarantees.md.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "guarantees.md"
HEAD = """# What is guaranteed

labelwise protects you from mistakes, and from machines that break: a bad line is counted, and nothing else is lost; and
a killed command or a full disk leaves the old output, or one that every reader refuses. It doesn't protect a project
folder from somebody who can write to it.

Each line names the files with its tests; `make test ARGS=tests/merge/test_oracle.py`, for example, runs one. `make
nightly` breaks the code by the patches in `tests/mutations`, and fails unless the tests notice. The command `python -m
tests.guarantees` writes this page.

| guarantee | held by |
|---|---|
"""
GUARANTEES = {
    "outcomes": (
        "Every T line of brat, and every row and span of a source, has one counted outcome, and each that is lost is "
        "listed with its place."
    ),
    "contract": "The merge follows its contract, which a second, simple implementation checks on random data.",
    "one-bad-line": "If a line or a span is bad, nothing else is lost.",
    "any-bytes": (
        "Whatever bytes an input has, reading it ends in a ledger that balances, or in an error that names it."
    ),
    "misread-rows": (
        "A row that a reader of JSON, tags or Parquet loses is counted: by the spans in the row, the rows that "
        "Parquet states, or the bytes read."
    ),
    "second-count": (
        "No sentence, token or annotation of a CoNLL or WebAnno file is lost; the tests count them a second time."
    ),
    "declared": (
        "Two entries are two datasets, whatever ids, times and file names say. If one entry lists two exports, the "
        "last one counts, and deleted spans stay deleted."
    ),
    "decisions": (
        "A decision changes the one span that it names, whatever the answers say. It has one counted outcome, and if "
        "you remove it, its effect is gone."
    ),
    "unreadable": "A file or a folder that can't be read is never skipped in silence.",
    "student": (
        "A student learns from no raw text that is a text of dev or test, is nearly equal to one, a part of one, "
        "contains one, or shares its `split_by` value."
    ),
    "demo": "The demo corpus never takes the place of data that a clone or an experiment lacks.",
    "git-add": "The command `git add -A` adds no text of your data.",
    "watched-data": "weasel and DVC see every change of the data that a project merges.",
    "changing-source": "A source that changes while it is read is an error, or is read as it was.",
    "opaque": "Labels and texts are opaque: no two of them share a file, a hash or a row.",
    "own-files": "A command replaces and deletes only files that such a command made.",
    "old-or-new": (
        "When a command fails or is killed, you find the old outputs, or the new ones, or outputs that every reader "
        "refuses. Run again, it gives the same bytes as without the failure."
    ),
    "one-corpus": (
        "A training reads the corpus that it began with, or ends. It refuses a corpus that a merge is replacing."
    ),
    "interrupt": "A command that is interrupted cleans up, and ends without a traceback.",
    "early": "A command finds out before the work begins that it can't write an output.",
    "full-disk": "A full disk is an error that names the folder.",
    "exclusive": "Two commands that write the same output exclude each other.",
    "changed-corpus": (
        "A corpus that has changed since the merge, in count or in bytes, isn't trained on, evaluated or merged."
    ),
    "tokenizer": (
        "The pipeline's tokenizer is the merge's, in every language. A pipeline whose tokens differ from its corpus's"
        " isn't trained, evaluated or packaged."
    ),
    "damaged": "A damaged `.spacy` file is an error that names it.",
    "same-bytes": (
        "The bytes of a merge depend on data and settings alone: not on workers, the order of texts, the time zone, "
        "or an earlier merge."
    ),
    "unmarked-labels": "If an entry lists labels that only other datasets mark in many of its texts, the merge stops: "
    "no wrong entry teaches that these texts have none.",
    "moved-splits": (
        "A text moves to another split only if a declaration names that split. All answers join it there, except "
        "those whose own dataset declares another split; these are counted, and the merge warns you."
    ),
    "resume": "Training again, or resuming after a kill, gives the same bytes on the CPU.",
    "ranks": (
        "Several processes train the same pipeline as one process, except for rounding, and stay equal to each other "
        "to the bit. If one is killed, all end."
    ),
    "prepared": (
        "Batches that another process prepares for a GPU teach the same, to the bit. If it is killed, training ends, "
        "and can be resumed."
    ),
    "second-run": (
        "A second run of the project does nothing, and a changed setting runs only the steps that it affects."
    ),
    "dev-and-test": "Errors that the report shows are those on dev; scores, intervals and verdicts are those on test.",
    "lost-gold": "Losing gold improves no score.",
    "spacys-scores": (
        "Where everything is annotated, and no gold was lost at token boundaries, scores are spaCy's to the last "
        "digit, those of training, too. Lost gold counts as missed, which spaCy can't know."
    ),
    "covered-labels": "A label is scored where it is known, and nowhere else.",
    "intervals": (
        "Intervals cover the truth. Without trainings with other seeds no difference between two trainings gets a "
        "star; with them, pipelines that differ by chance alone get one in 5% of comparisons at most."
    ),
    "compared": "The command `compare` says so if test sets differ, and refuses predictions of another run.",
    "seen-texts": "Scores of texts that a pipeline was trained on, or may have been, are marked as such.",
    "unknown-labels": "An unknown label of a text teaches nothing: no loss, and a gradient of exactly zero.",
    "loads": "A trained `ner` loads with spaCy alone, a per-label pipeline as a wheel.",
    "words-of-texts": "The words of your texts aren't saved with the pipeline.",
    "streaming": "Training streams partitions and dev, and names the remedy when memory runs out.",
    "memory": "200 labels on texts of 4,000 words take bounded memory.",
    "markup": "Markup in texts, labels and names adds no element to the report, and the page loads nothing.",
    "importing": "Importing labelwise changes nothing in your process.",
    "offline": "Nothing leaves the machine unless you ask for it.",
    "no-code": "Checkpoints, `.spacy` files and YAML from strangers run no code.",
    "paths": "A label isn't a path, and a manifest names no file elsewhere.",
}
UNUSUAL = {"long", "nightly", "gpu"}  # marks of tests that `make test` leaves out


def find_marks(file: Path) -> Iterator[tuple[str, bool]]:
    tree = ast.parse(file.read_text(encoding="utf8"))
    whole = [node.value for node in tree.body if isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node)]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            marks = [
                ast.unparse(expression).removeprefix("pytest.mark.") for expression in (*whole, *node.decorator_list)
            ]
            for mark in marks:
                if mark.startswith("guarantee("):
                    yield ast.literal_eval(mark.removeprefix("guarantee")), UNUSUAL.isdisjoint(marks)


def held_by() -> dict[str, dict[str, bool]]:
    tests: dict[str, dict[str, bool]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        for name, usual in find_marks(file):
            files = tests.setdefault(name, {})
            path = file.relative_to(TESTS).as_posix()
            files[path] = usual or files.get(path, False)
    return tests


def write_page() -> str:
    files = {name: ", ".join(f"`{file}`" for file in tests) for name, tests in held_by().items()}
    return HEAD + "".join(f"| {sentence} | {files[name]} |\n" for name, sentence in GUARANTEES.items())


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf8")
