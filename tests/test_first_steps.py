"""The page of first steps: its own commands, with the decisions of somebody who knows what was planted."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from labelwise.demo.corpus import add_noise, make_doc
from labelwise.export.source import read_corpus
from tests.clone import Clone, replace_once
from tests.conftest import ROOT, write_jsonl

pytestmark = pytest.mark.long

DOCS, LABELS, NOISE = 400, ("PERSON", "PLACE", "COMPANY"), 0.1


def decisions(finding: dict[str, Any]) -> list[dict[str, Any]]:
    """What the page saves of a case in which gold is wrong: to another label, one span is removed, and one added."""
    current, proposed = finding["current"], finding["proposed"]
    changes = [(finding["label"], current, proposed)]
    if current and proposed and current[2] != proposed[2]:
        changes = [(current[2], current, None), (proposed[2], None, proposed)]
    return [
        {
            "dataset": finding["answers"][label]["dataset"],
            "text": finding["key"],
            "label": label,
            "answer": finding["answers"][label]["answer"],
            "verdict": "gold is wrong",
            "removed": removed and removed[:2],
            "added": added and added[:2],
        }
        for label, removed, added in changes
    ]


def wrong_spans(corpus: Path) -> int:
    """Count the spans of train and dev that were planted, or are missing."""
    truth = {(doc := make_doc(number, labels=LABELS)).path: set(doc.spans) for number in range(DOCS)}
    return sum(len(set(doc.spans) ^ truth[doc.name]) for doc in read_corpus(corpus, ["train", "dev"]))


def test_planted_errors_are_found_decided_and_gone(tmp_path):
    """With three labels, more errors, and few steps; in each case that is planted, somebody says that gold is wrong."""
    page = (ROOT / "docs" / "first_steps.md").read_text(encoding="utf8")
    activate, train, keep, decide, again = [
        "".join(line.removeprefix(indent) for line in block.splitlines(keepends=True))
        for indent, block in re.findall(r"(?m)^( *)```sh\n((?:.*\n)*?) *```", page)
    ]
    assert activate == "source .venv/bin/activate\n"  # the clone's path has the environment's programs
    clone = Clone(tmp_path / "clone")
    for name in ("project.yml", "dvc.yaml"):
        replace_once(clone.root / name, "--docs 24 --labels 3", f"--docs {DOCS} --labels {len(LABELS)}")
        replace_once(clone.root / name, "--noise 0.03", f"--noise {NOISE}")
    clone.set("cpu_steps", "60")
    clone.run("git", "commit", "-qam", "three labels")
    first = clone.paste(train)
    clone.paste(keep)
    planted = {doc.path: set(doc.spans) ^ set(add_noise(doc, NOISE, labels=LABELS).spans) for doc in docs()}
    _, *found = map(json.loads, (clone.root / "training/check/findings.jsonl").read_text(encoding="utf8").splitlines())
    cases = [
        one
        for one in found
        if {tuple(span) for span in (one["current"], one["proposed"]) if span} & planted[one["doc"]]
    ]
    assert len(cases) > 20
    before = wrong_spans(clone.root / "corpus")
    write_jsonl(clone.root / "decisions.jsonl", rows := [row for one in cases for row in decisions(one)])
    clone.paste(decide)
    clone.paste(again)
    assert wrong_spans(clone.root / "corpus") < before - len(cases) / 2
    html = (clone.root / "report/cpu.html").read_text(encoding="utf8")
    decided, was, now = re.search(r"You decided (\d+); F1 was\s+(0\.\d+) at HEAD, is (0\.\d+)", html).groups()
    assert 0 < int(decided) <= len(rows)
    assert f"F1 {was} " in first
    assert float(was) < float(now)
    share = re.search(r"errors of test itself, by your \d+ decisions: (\d+)%", html).group(1)
    assert 0 < int(share) <= 100 * NOISE  # what the check doesn't find isn't in it


def docs():
    return [make_doc(number, labels=LABELS) for number in range(DOCS)]
