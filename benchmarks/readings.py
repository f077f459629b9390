"""What people who read the check's findings say of them, without seeing its scores.

    python -m benchmarks.readings sheet PROJECT SHEET.md
    python -m benchmarks.readings count CORPUS=READER1.json,READER2.json ...

The first writes what the check of a project (`weasel run fix`) names first: 20 forms, 20 findings, and 15 texts of the
label that the report names first, each with its text and other occurrences of its words. A reader answers each with
true or false, by the rule at the head of the sheet, in JSON: {"forms": [...], "findings": [...], "tasks": [...]}.
The second counts the answers of two readers of each corpus.
"""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from benchmarks.measure import Cell, write_result
from labelwise.evaluate.results import load_results
from labelwise.report.tasks import list_labels

MOST = {"forms": 20, "findings": 20, "tasks": 15}
OTHERS = 8  # occurrences of a form
AROUND = 90  # characters
RULE = """A rule for "true":

- A **form** is inconsistent if, of the occurrences shown, at least two that have the same sense and the same role in
  their sentences are annotated differently for the label, so that no policy gives both. Senses or roles that differ
  explain it: false.
- A **finding** is true if what is annotated at this place is wrong, by what the label plainly means and by how most
  occurrences of the same sense are annotated. What is proposed needn't be right.
- A **task** is true if at least one of the things that it says to look at is a true finding, or a question that a
  policy has to decide.
"""
app = typer.Typer(add_completion=False, help=__doc__)


class Corpus:
    """The texts of train and dev, and their spans."""

    def __init__(self, corpus: Path) -> None:
        """Read them."""
        vocab = Vocab()
        files = [file for split in ("train", "dev") for file in sorted((corpus / split).glob("*.spacy"))]
        self.texts: list[tuple[str, list[tuple[int, int, str]]]] = []
        for file in files:
            for doc in DocBin().from_disk(file).get_docs(vocab):
                self.texts.append((doc.text, [(e.start_char, e.end_char, e.label_) for e in doc.ents]))

    def show(self, text: str, start: int, end: int) -> str:
        """Show a place with what is around it, and what is marked there."""
        spans = next((spans for own, spans in self.texts if own == text), [])
        marked = [f"{text[s:e]} = {label}" for s, e, label in spans if s < end and start < e] or ["nothing"]
        before, after = text[max(0, start - AROUND) : start], text[end : end + AROUND]
        return f"…{before}>>{text[start:end]}<<{after}… [marked: {'; '.join(marked)}]".replace("\n", " ")

    def others(self, form: str) -> Iterator[str]:
        """Show occurrences of words, of several texts first."""
        pattern = re.compile(rf"(?<!\w){re.escape(form)}(?!\w)", re.IGNORECASE)
        found = [(text, match) for text, _ in self.texts for match in [pattern.search(text)] if match]
        step = max(1, len(found) // OTHERS)
        for text, match in found[::step][:OTHERS]:
            yield self.show(text, *match.span())


@app.command()
def sheet(
    project: Annotated[Path, typer.Argument(help="A project in which `weasel run fix` was run")],
    out: Annotated[Path, typer.Argument(help="The Markdown file to write")],
) -> None:
    """Write what is to be read."""
    check, corpus = project / "training" / "check", Corpus(project / "corpus")
    docs = {}
    for file in sorted((check / "tasks").glob("*.jsonl")):
        for line in file.read_text(encoding="utf8").splitlines():
            task = json.loads(line)
            docs[task["meta"].get("doc")] = task["text"]
    with (check / "findings.tsv").open(encoding="utf8") as table:
        findings = list(csv.DictReader(table, delimiter="\t"))
    lines = [RULE, "\n# Forms\n"]
    groups = json.loads((check / "check.json").read_text(encoding="utf8"))["groups"][: MOST["forms"]]
    for number, group in enumerate(groups, 1):
        key = [group[name] for name in ("kind", "label", "form", "proposed")]
        own = [row for row in findings if [row[name] for name in ("kind", "label", "form", "proposed")] == key]
        lines.append(f"\n## Form {number}: '{group['form']}', {group['label']} ({group['kind']})\n")
        lines += ["Said to be wrong:"] + [f"- {_show(corpus, docs, row)}" for row in own[:4]]
        lines += ["Others:"] + [f"- {shown}" for shown in corpus.others(group["form"])]
    lines.append("\n# Findings\n")
    for number, row in enumerate(findings[: MOST["findings"]], 1):
        lines.append(f"\n## Finding {number}: {row['why'].partition(':')[0]}\n\n- {_show(corpus, docs, row)}\nOthers:")
        lines += [f"- {shown}" for shown in corpus.others(row["form"])]
    results = load_results(project, "cpu")
    assert results.metrics
    first = next(
        row for row in list_labels(results.metrics, results.details) if not row.ranked.few and row.task.command
    )
    lines.append(f"\n# Tasks of {first.ranked.label}\n")
    tasks = (check / first.task.file.removeprefix("training/check/")).read_text(encoding="utf8").splitlines()
    for number, task in enumerate(map(json.loads, tasks[: MOST["tasks"]]), 1):
        lines.append(f"\n## Task {number}, {task['meta'].get('doc')}\n")
        for look in task["meta"]["look"].split("; "):
            at, _, what = look.partition(": ")
            if not at.isdecimal():
                continue  # the rest of what stood before
            start = int(at)
            form = re.match(r"'(.*?)' may", what)
            word = re.compile(r"\S*").match(task["text"], start)
            end = start + len(form[1]) if form else word.end() if word else start
            lines.append(f"- {what.partition(':')[0]}: {corpus.show(task['text'], start, end)}")
    out.write_text("\n".join(lines) + "\n", encoding="utf8")


def _show(corpus: Corpus, docs: dict[str, str], row: dict[str, str]) -> str:
    start, end = (row["start"], row["end"]) if row["start"] else (row["proposed_start"], row["proposed_end"])
    text = docs.get(row["doc"])
    said = f"{row['label'] or 'nothing'} → {row['proposed'] or 'nothing'}"
    return f"{said}: {corpus.show(text, int(start), int(end)) if text else row['context']}"


@app.command()
def count(read: Annotated[list[str], typer.Argument(metavar="CORPUS=READER1.json,READER2.json ...")]) -> None:
    """Count the answers, and how often two readers agree."""
    columns = {"corpus": "", "what": "", "of": ",", "true, one reader": ",", "the other": ",", "both say the same": ","}
    rows: list[list[Cell]] = []
    for given in read:
        corpus, _, files = given.partition("=")
        one, other = (json.loads(Path(file).read_text(encoding="utf8")) for file in files.split(","))
        for what in MOST:
            pairs = list(zip(one[what], other[what], strict=True))
            same = sum(mine == theirs for mine, theirs in pairs)
            rows.append([corpus, what, len(pairs), sum(one[what]), sum(other[what]), same])
    write_result("check_read", columns, rows)


if __name__ == "__main__":
    app()
