from pathlib import Path

import pytest

from tests.cases.making import jsonl, sentences
from tests.clone import Clone


def write_rows(root: Path, early: int) -> None:
    rows = [{"text": sentence.text, "spans": sentence.objects()} for sentence in sentences()]
    for row in rows:
        row["spans"] = [span | {"end": span["end"] - early} for span in row["spans"]]
    (root / "assets/prodigy/all.jsonl").write_text(jsonl(rows))


@pytest.mark.long
def test_weasel_and_dvc_stop_before_training(tmp_path: Path) -> None:
    clone = Clone(tmp_path / "clone")
    clone.set("data", "assets")
    write_rows(clone.root, early=1)
    for command in (("weasel", "run", "all"), ("dvc", "repro", "train@cpu")):
        printed = clone.run(*command, status=1 if command[0] == "weasel" else 255)
        assert "offsets: inclusive" in printed, printed
        assert not (clone.root / "training/cpu").exists()
    assert "found misread data" in " ".join(clone.run("weasel", "run", "train-cpu", status=1).split())
    clone.run("python", "-m", "scripts.why", "corpus", "all.jsonl:1")
    declared = clone.root / "assets/prodigy/datasets.yml"
    declared.write_text(declared.read_text() + "  offsets: inclusive\n")
    clone.run("weasel", "run", "all")
    model = (clone.root / "training/cpu/model-best/meta.json").read_bytes()
    write_rows(clone.root, early=2)
    assert "Correct `offsets: inclusive`" in clone.run("weasel", "run", "all", status=1)
    assert (clone.root / "training/cpu/model-best/meta.json").read_bytes() == model
    for name in ("evaluate-cpu", "check", "report-cpu", "package"):
        assert "found misread data" in " ".join(clone.run("weasel", "run", name, status=1).split()), name
