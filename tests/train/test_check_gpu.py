"""`weasel run check-gpu` on the CPU; the GPU's environment has no pytest."""

import json

import pytest

from benchmarks import gpu, measure


@pytest.mark.long
def test_all_steps_of_a_check_work_without_pytest(demo_corpus, tmp_path, monkeypatch, capsys):
    pytest.importorskip("spacy_transformers")
    (tmp_path / "pytest.py").write_text("raise ImportError('pytest is not in requirements/gpu.txt')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(gpu, "OUT", tmp_path / "out")
    gpu.main(demo_corpus, gpu_id=-1, steps=8, tiny=True)
    printed = capsys.readouterr().out
    assert "FAILED" not in printed
    assert "Resuming from step" in printed
    assert printed.count(" per second") + printed.count(" a second") == 7


def test_a_result_is_written_where_there_is_no_git(tmp_path, monkeypatch, capsys):
    """A release's ZIP file, or a copy on another machine, has no commit."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    measure.write_result("gpu", {"step": ""}, [["driver"]], command="c")
    assert json.loads((tmp_path / "gpu.json").read_text())["commit"] is None
    monkeypatch.setenv("PATH", str(tmp_path))  # no git either
    assert measure.find_commit() is None
