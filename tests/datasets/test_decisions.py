import json
from pathlib import Path
from typing import Any

import pytest

from labelwise.base.errors import InputError
from labelwise.base.files import locked
from labelwise.datasets.decisions import add_decisions, read_decisions
from scripts.import_decisions import import_decisions_cli
from tests.conftest import another_process, call, read_jsonl, write_jsonl

GOOD = {"dataset": "a", "text": "0a" * 12, "label": "A", "answer": "0b" * 6, "verdict": "gold is wrong"}
GOOD |= {"removed": [0, 3], "added": None}
OTHER = GOOD | {"removed": None, "added": [4, 7], "note": "é"}


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [{"removed": None, "added": None} | row for row in read_jsonl(folder / "decisions.jsonl")]


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("{oops", "bad JSON"),
        ("[]", "malformed: Expected `object`"),
        (GOOD | {"more": 1}, "malformed: Object contains unknown field `more`"),
        (GOOD | {"text": "0A" * 12}, "malformed: Expected `str` matching regex"),
        (GOOD | {"verdict": "maybe"}, "malformed: Invalid enum value 'maybe' - at `$.verdict`"),
        (GOOD | {"added": [0, 3]}, "malformed: `removed` and `added` are equal; correct one of them"),
        (GOOD | {"removed": [3, 3]}, "malformed: [3, 3] isn't a span: its end must come after its start"),
        (GOOD | {"removed": [-1, 3]}, "malformed: Expected `int` >= 0"),
    ],
)
def test_a_bad_row_costs_itself_and_is_named_with_its_line_and_a_remedy(tmp_path, bad, problem):
    write_jsonl(tmp_path / "one.jsonl", [GOOD, "", bad, OTHER])
    first, bad_rows, last = read_decisions(tmp_path / "one.jsonl")
    assert (bad_rows.file, bad_rows.line, bad_rows.decision) == ("one.jsonl", 3, None)
    assert str(bad_rows.problem).startswith(problem)
    assert f": {bad if isinstance(bad, str) else json.dumps(bad)[:50]}" in str(bad_rows.problem)
    assert str(bad_rows.problem).endswith("; correct the row, or delete it")
    assert (first.decision.removed, first.decision.added, first.decision.note) == ((0, 3), None, "")
    assert (last.line, last.decision.added, last.decision.note) == (4, (4, 7), "é")


def test_the_last_decision_about_a_span_is_kept_at_the_end(tmp_path):
    write_jsonl(tmp_path / "one.jsonl", [GOOD, OTHER, GOOD | {"added": [0, 7]}])
    write_jsonl(tmp_path / "two.jsonl", [OTHER | {"verdict": "gold is right"}])
    for name, counts in (
        ("one", {"new": 2, "replaced decision": 1}),
        ("one", {"duplicate": 2, "replaced decision": 1}),
        ("two", {"replaces an earlier one": 1}),
    ):
        added = add_decisions(tmp_path / f"{name}.jsonl", tmp_path / "kept")
        assert (+added.counts, added.total) == (counts, 2)
    assert rows_of(tmp_path / "kept") == [GOOD | {"added": [0, 7]}, OTHER | {"verdict": "gold is right"}]
    file = tmp_path / "kept" / "decisions.jsonl"
    with another_process(locked(file)), pytest.raises(InputError, match="another process is writing this"):
        add_decisions(tmp_path / "one.jsonl", tmp_path / "kept")
    file.write_text(edited := file.read_text() + "{oops\n")
    with pytest.raises(InputError, match=r"kept/decisions\.jsonl:3: bad JSON: .*; correct the row, or delete it"):
        add_decisions(tmp_path / "one.jsonl", tmp_path / "kept")
    assert file.read_text() == edited


def test_the_command_says_what_became_of_each_row(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "project.yml; give the project's folder as" in call(import_decisions_cli, "saved.jsonl", status=1)
    (tmp_path / "project.yml").touch()
    write_jsonl(tmp_path / "saved.jsonl", ["{oops", "[]"])
    printed = " ".join(call(import_decisions_cli, "saved.jsonl", status=1).split())
    assert "it has no decision; give the file that you saved in a report; the first of 2 rows: bad" in printed
    assert not (tmp_path / "assets").exists()
    write_jsonl(tmp_path / "saved.jsonl", [GOOD, "{oops", OTHER])
    printed = " ".join(call(import_decisions_cli, "saved.jsonl").split())
    for line in ("saved.jsonl:2: bad JSON", "Rows: 2 new, 1 can't be used", "has 2 decided cases, in 2 rows"):
        assert line in printed
    assert rows_of(tmp_path / "assets" / "decisions") == [GOOD, OTHER]


@pytest.mark.parametrize(
    ("first", "second", "cases"),
    [
        ({}, {"label": "B", "removed": None, "added": [1, 9]}, 1),  # a correction to another label
        ({}, {"label": "B", "removed": None, "added": [3, 9]}, 2),
        ({}, {"label": "B", "removed": [0, 3]}, 2),
        ({}, {"removed": None, "added": [1, 9]}, 2),
        ({}, {"label": "B", "removed": None, "added": [1, 9], "verdict": "policy"}, 2),
        ({}, {"label": "B", "removed": None, "added": [1, 9], "text": "0b" * 12}, 2),
        ({"removed": None, "added": [0, 3]}, {"label": "B", "removed": None, "added": [1, 9]}, 2),
        ({}, {"verdict": "policy"}, 1),  # replaced decision
    ],
)
def test_cases_are_counted_not_rows(first, second, cases, tmp_path):
    write_jsonl(tmp_path / "saved.jsonl", [OTHER | {"text": "0c" * 12}, GOOD | first, GOOD | second])
    assert add_decisions(tmp_path / "saved.jsonl", tmp_path / "kept").cases == 1 + cases
