"""Sixty sentences with a person, a place and a year each, and the merge of files with them."""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.testing import CliRunner

from scripts.convert_brat import convert_brat_cli
from scripts.merge import merge_cli
from tests.conftest import ROOT

N = 60
FIRST = ["Ana", "Ben", "Eva", "Ida", "Jan", "Kai", "Lea", "Leo", "Lou", "Max", "Mia", "Noa", "Rui", "Sam", "Tom", "Zoe"]
LAST = ["Berg", "Costa", "Duarte", "Ferro", "Haas", "Klee", "Lind", "Moreau", "Novak", "Prado", "Sousa", "Weiss"]
PLACES = ["Ghent", "Graz", "Lisbon", "Lyon", "Malmo", "Porto", "Split", "Tartu", "Turin"]
VERBS = ("wrote from", "flew to", "works in", "was born in", "moved to", "left")
PROJECT = ROOT / "project.yml"

Mark = tuple[int, int, str]


class Sentence(NamedTuple):
    """A sentence; its spans are (start, end, label), its tokens separated by one space."""

    text: str
    spans: list[Mark]

    @property
    def tagged(self) -> list[tuple[str, str]]:
        """Return (token, BIO tag) pairs."""
        rows, place = [], 0
        for token in self.text.split(" "):
            within = [(start, label) for start, end, label in self.spans if start <= place < end]
            rows.append((token, f"{'B' if within[0][0] == place else 'I'}-{within[0][1]}" if within else "O"))
            place += len(token) + 1
        return rows

    def objects(self, **more: Any) -> list[dict[str, Any]]:
        """Return the spans as Prodigy writes them."""
        return [{"start": start, "end": end, "label": label, **more} for start, end, label in self.spans]


class Outcome(NamedTuple):
    """How a merge ended.

    ledger (dict | None): metrics/merge.json; None without it.
    """

    status: int
    printed: str
    ledger: dict[str, Any] | None

    @property
    def said(self) -> str:
        """All that was printed, on one line."""
        return " ".join(self.printed.split())

    @property
    def entities(self) -> dict[str, int]:
        labels = self.ledger["labels"] if self.ledger else {}
        return {label: counts["entity"] for label, counts in labels.items() if counts.get("entity")}


def sentences(number: int = N, seed: int = 0) -> list[Sentence]:
    """Make different sentences, with one PER, LOC and DATE each, in this order."""
    chance = random.Random(seed)
    spans_of: dict[str, list[Mark]] = {}
    while len(spans_of) < number:
        person = f"{chance.choice(FIRST)} {chance.choice(LAST)}"
        parts = [person, chance.choice(VERBS), chance.choice(PLACES), "in", str(chance.randint(1900, 2020)), "."]
        starts = [len(" ".join(parts[:place])) + (place > 0) for place in range(len(parts))]
        marks = ((0, "PER"), (2, "LOC"), (4, "DATE"))
        spans = [(starts[place], starts[place] + len(parts[place]), label) for place, label in marks]
        spans_of.setdefault(" ".join(parts), spans)
    return [Sentence(text, spans) for text, spans in spans_of.items()]


def tasks(number: int = N) -> list[dict[str, Any]]:
    """Make a task of Prodigy's of each sentence."""
    return [{"text": sentence.text, "spans": sentence.objects()} for sentence in sentences(number)]


def jsonl(rows: Iterable[Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def table(rows: Iterable[Iterable[Sequence[str]]], separator: str = "\t") -> str:
    return "".join("".join(separator.join(cells) + "\n" for cells in sentence) + "\n" for sentence in rows)


def merge_folder(root: Path, files: Mapping[str, str | bytes], project: str = "") -> Outcome:
    """Convert and merge files as the commands of project.yml do.

    files (Mapping): contents by path below assets, such as `prodigy/a.jsonl`.
    project (str): content of project.yml; "" for the clone's.
    """
    for folder in ("assets/prodigy", "assets/brat", "assets/decisions"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    content = (project or PROJECT.read_text(encoding="utf8")).replace("data: assets/demo ", "data: assets ", 1)
    (root / "project.yml").write_text(content, encoding="utf8")
    if not (root / "configs").exists():
        (root / "configs").symlink_to(ROOT / "configs")
    for name, content in files.items():
        path = root / "assets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    declarations = [root / "assets/prodigy"]
    printed = ""
    if any((root / "assets/brat").iterdir()):
        tasks = root / "corpus/tasks"
        status, printed = run(convert_brat_cli, root / "assets/brat", tasks, "--project", root / "project.yml")
        if status:
            return Outcome(status, printed, None)
        declarations.insert(0, tasks / "datasets.yml")
    corpus = root / "corpus"
    options = ("--decisions", root / "assets/decisions", "--metrics", root / "metrics/merge.json")
    status, more = run(merge_cli, *declarations, corpus, *options, "--workers", 1, "--project", root / "project.yml")
    metrics = root / "metrics/merge.json"
    return Outcome(status, printed + more, json.loads(metrics.read_bytes()) if metrics.exists() else None)


def merge_rows(root: Path, entry: str = "", **rows: str | Iterable[Any]) -> Outcome:
    """Merge files of rows of JSON, by their names, as `merge_folder` does; an entry is the content of datasets.yml."""
    files = {f"prodigy/{name}.jsonl": of if isinstance(of, str) else jsonl(of) for name, of in rows.items()}
    return merge_folder(root, files | ({"prodigy/datasets.yml": entry} if entry else {}))


def run(command: Any, *arguments: object) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(command)
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "400"})
    assert isinstance(done.exception, SystemExit | None), done.exc_info
    return done.exit_code, done.output
