"""Files of decisions: each row is read, or named with a remedy; and they are put where the merge reads them."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from labelwise.errors import InputError
from labelwise.files import locked
from labelwise.sources.decisions import add_decisions, read_decisions
from scripts.decide import decide_cli
from tests.conftest import another_process, write_jsonl

GOOD = {"dataset": "a", "text": "0a" * 12, "label": "A", "answer": "0b" * 6, "verdict": "gold is wrong"}
GOOD |= {"removed": [0, 3], "added": None}
OTHER = GOOD | {"removed": None, "added": [4, 7], "note": "é"}


def rows_of(folder: Path) -> list[dict[str, Any]]:
    found = map(json.loads, (folder / "decisions.jsonl").read_text(encoding="utf8").splitlines())
    return [{"removed": None, "added": None} | one for one in found]


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("{oops", "bad JSON"),
        ("[]", "malformed: Expected `object`"),
        (GOOD | {"more": 1}, "malformed: .*unknown field `more`"),
        ({key: value for key, value in GOOD.items() if key != "answer"}, "malformed: .*required field `answer`"),
        (GOOD | {"text": "0A" * 12}, r"malformed: .*\$\.text"),
        (GOOD | {"answer": "0b"}, r"malformed: .*\$\.answer"),
        (GOOD | {"verdict": "maybe"}, r"malformed: .*'maybe' - at `\$\.verdict`"),
        (GOOD | {"removed": None}, "malformed: `removed` and `added` are the same: one of them must be another span"),
        (GOOD | {"added": [0, 3]}, "malformed: `removed` and `added` are the same"),
        (GOOD | {"removed": [3, 3]}, r"malformed: \[3, 3\] is no span: its end must come after its start"),
        (GOOD | {"removed": [-1, 3]}, r"malformed: .*\$\.removed"),
        (GOOD | {"removed": [1, 2, 3]}, r"malformed: .*\$\.removed"),
    ],
)
def test_a_bad_row_costs_itself_and_is_named_with_its_line_and_a_remedy(tmp_path, bad, problem):
    write_jsonl(tmp_path / "one.jsonl", [GOOD, "", bad, OTHER])
    first, found, last = read_decisions(tmp_path / "one.jsonl")
    assert (found.file, found.line, found.decision) == ("one.jsonl", 3, None)
    with pytest.raises(InputError, match=problem):
        raise InputError(found.problem)
    shown = bad if isinstance(bad, str) else json.dumps(bad)[:50]
    assert f": {shown}" in found.problem
    assert found.problem.endswith("; correct the row, or delete it")
    assert first.decision
    assert (first.decision.removed, first.decision.added, first.decision.note) == ((0, 3), None, "")
    assert last.decision
    assert (last.line, last.decision.added, last.decision.note) == (4, (4, 7), "é")


def test_the_last_decision_about_a_span_is_kept_at_the_end(tmp_path):
    write_jsonl(tmp_path / "one.jsonl", [GOOD, OTHER, GOOD | {"added": [0, 7]}])
    write_jsonl(tmp_path / "two.jsonl", [OTHER | {"verdict": "gold is right"}])
    last = [GOOD | {"added": [0, 7]}, OTHER | {"verdict": "gold is right"}]
    for name, counts in (
        ("one", {"new": 2, "decided again": 1}),
        ("one", {"duplicate": 2, "decided again": 1}),
        ("two", {"replaces an earlier one": 1}),
    ):
        added = add_decisions(tmp_path / f"{name}.jsonl", tmp_path / "kept")
        assert (+added.counts, added.total) == (counts, 2)
    assert rows_of(tmp_path / "kept") == last


def test_decisions_that_somebody_has_edited_badly_or_is_writing_are_not_lost(tmp_path):
    write_jsonl(tmp_path / "one.jsonl", [GOOD])
    write_jsonl(tmp_path / "kept" / "decisions.jsonl", [OTHER, "{oops"])
    before = (tmp_path / "kept" / "decisions.jsonl").read_bytes()
    with pytest.raises(InputError, match=r"kept/decisions\.jsonl:2: bad JSON: .*; correct the row, or delete it"):
        add_decisions(tmp_path / "one.jsonl", tmp_path / "kept")
    with (
        another_process(locked(tmp_path / "kept/decisions.jsonl")),
        pytest.raises(InputError, match="another process is writing this"),
    ):
        add_decisions(tmp_path / "one.jsonl", tmp_path / "kept")
    assert (tmp_path / "kept" / "decisions.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "one.jsonl: there is no decision; give the file that a report's page has saved$"),
        (["{oops", "[]"], "there is no decision; .*; the first of 2 rows: bad JSON"),
    ],
)
def test_a_file_without_a_decision_is_an_error(tmp_path, content, message):
    write_jsonl(tmp_path / "one.jsonl", content)
    with pytest.raises(InputError, match=message):
        add_decisions(tmp_path / "one.jsonl", tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def decide(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(decide_cli)
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, " ".join(result.output.split())


def test_the_command_says_what_became_of_each_row(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "project.yml").touch()
    write_jsonl(tmp_path / "saved.jsonl", [GOOD, "{oops", OTHER])
    code, printed = decide("saved.jsonl")
    assert code == 0
    assert "saved.jsonl:2: bad JSON" in printed
    assert "new 2" in printed
    assert "can't be used 1" in printed
    assert "assets/decisions/decisions.jsonl has 2 decisions" in printed
    assert rows_of(tmp_path / "assets" / "decisions") == [GOOD, OTHER]
    code, printed = decide("saved.jsonl", "--project-root", "elsewhere")
    assert code == 1
    assert "elsewhere: there is no project.yml; give the project's" in printed
