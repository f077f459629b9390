import json
from pathlib import Path
from typing import Any

import pytest

from labelwise.corpus.import_checks import ImportCheck, read_checks
from labelwise.merge.check_kinds import Kind, nothing, write_words
from labelwise.merge.checks import FILES, KINDS
from labelwise.merge.corpus_checks import ADVICE
from labelwise.merge.reading_checks import READING
from scripts.why import why_cli
from tests.conftest import Merging, call, task


@pytest.mark.parametrize(
    ("template", "values", "words"),
    [
        ("{n:span} of {all:,}", {"n": 1, "all": 2000}, "1 span of 2,000"),
        ("{n:row was|rows were} read", {"n": 2000}, "2,000 rows were read"),
        ("{labels:label|labels}: {labels:~it|them}", {"labels": ["A"]}, "label A: it"),
        (
            "{labels:label|labels}: {labels:~it|them}",
            {"labels": [*"ABCDEFGH"]},
            "labels A, B, C, D, E, F and 2 more: them",
        ),
        ("{names!r}", {"names": ["ann", "bob"]}, "'ann', 'bob'"),
        ("{names!r}", {"names": []}, "none"),
        ("{counts}", {"counts": {"B": 3000, "A": 1}}, "B (3,000), A (1)"),
        ("{f:.3f}{offsets:? by `%s`}", {"f": 0.5, "offsets": ""}, "0.500"),
        ("{f:.3f}{offsets:? by `%s`}", {"f": 0.5, "offsets": "bytes"}, "0.500 by `bytes`"),
        ("{{{label!y}: {other!y}}}", {"label": "no", "other": "a: b"}, "{'no': 'a: b'}"),
        ("{add}", {}, "add to the entry 'd' in datasets.yml"),
    ],
)
def test_words_fit_their_values(template: str, values: dict[str, Any], words: str) -> None:
    kind = Kind("kind", nothing, template)
    n = values.pop("n", 0)
    assert write_words(kind, ImportCheck(kind="kind", dataset="d", n=n, values=values)).sentence == words


def test_each_kind_has_a_name_of_its_own() -> None:
    assert len(KINDS) == len([*READING, *ADVICE, *FILES])


def add_answers(merging: Merging) -> None:
    texts = [f"big cat {number}" for number in range(10)]
    merging.add(
        "a", ["A"], ["{oops", *(task(text, (0, 3), _annotator_id=who) for text in texts for who in ("ann", ""))]
    )


def test_data_is_stored_and_neither_words_nor_paths_nor_metrics(tmp_path: Path) -> None:
    files = []
    for name in ("one", "two"):
        merging = Merging(tmp_path / name)
        add_answers(merging)
        ledger = merging.run()
        assert [check.sample for check in ledger.checks if check.kind == "problems"] == [
            ["dataset 'a', a.jsonl, line 1: bad JSON: object keys must be strings (byte 1): 'oops'"]
        ]
        assert "checks" not in ledger.metrics()
        files.append((merging.root / "corpus/import_checks.json").read_bytes())
    assert files[0] == files[1]
    stored = {check["kind"]: check for check in json.loads(files[0])}
    assert stored["anonymous answers"] == {
        "kind": "anonymous answers",
        "dataset": "a",
        "n": 10,
        "values": {"name": "ann"},
    }
    assert stored["problems"] == {"kind": "problems", "n": 1}


def test_why_prints_what_is_stored(merging: Merging, monkeypatch: pytest.MonkeyPatch) -> None:
    add_answers(merging)
    merging.run()
    monkeypatch.chdir(merging.root)
    printed = " ".join(call(why_cli, "corpus").split())
    assert "Dataset 'a': 10 texts were answered by 'ann' and anonymously; these count as two annotators" in printed
    assert "If 'ann' gave both, add to the entry 'a' in datasets.yml: annotator: ann" in printed
    assert f"import checks found {len(read_checks(Path('corpus')))} problems" in printed
