"""`weasel run check-gpu`, as far as the CPU goes; in the GPU's environment, which has no pytest."""

import json
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest

from benchmarks import gpu, measure
from spacy_per_label import PerLabelRecognizer


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


@pytest.mark.parametrize("enough", [False, True])
def test_a_batch_that_does_not_fit_is_made_by_a_limit(enough, demo_corpus, tiny_bert, tmp_path, monkeypatch, capsys):
    """Not by a batch so large that it fits no card; a limit that nothing hits is an error."""
    torch, limits, update = pytest.importorskip("torch"), [], PerLabelRecognizer.update

    def within_limit(self, examples, **options):
        update(self, examples, **options)
        if limits and not enough and sum(map(len, examples)) > 500:
            raise MemoryError

    monkeypatch.setattr(PerLabelRecognizer, "update", within_limit)
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda: 200 * 2**20)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: SimpleNamespace(total_memory=1000 * 2**20))
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", limits.append)
    monkeypatch.setattr(gpu, "free_memory", lambda: 100 * 2**20)
    monkeypatch.chdir(tmp_path)
    if enough:
        with pytest.raises(RuntimeError, match="200 MB were needed, 160 MB allowed: nothing was divided"):
            gpu.train_in_less(str(demo_corpus), str(tiny_bert), "-1")
    else:
        gpu.train_in_less(str(demo_corpus), str(tiny_bert), "-1")
        assert "words at a time in 160 of 200 MB" in capsys.readouterr().out
    assert limits == [pytest.approx(0.16)]


def test_a_result_is_written_where_there_is_no_git(tmp_path, monkeypatch, capsys):
    """A ZIP file of a release, or a copy on another machine, has no commit."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    measure.write_result("gpu", {"step": ""}, [["driver"]], command="c")
    assert json.loads((tmp_path / "gpu.json").read_text())["commit"] is None
    monkeypatch.setenv("PATH", str(tmp_path))  # no git either
    assert measure.find_commit() is None


def kernel(start: float, end: float, device: str = "CUDA") -> Any:
    """What PyTorch's profiler tells of one, in microseconds."""
    types = pytest.importorskip("torch").autograd.DeviceType
    return SimpleNamespace(device_type=getattr(types, device), time_range=SimpleNamespace(start=start, end=end))


@pytest.mark.parametrize(
    ("events", "percent"),
    [
        ([kernel(0, 250_000), kernel(100_000, 300_000), kernel(900_000, 1_000_000), kernel(0, 10**6, "CPU")], [40]),
        ([kernel(0, 5_000_000)], [100]),
        ([], []),
    ],
)
def test_a_gpu_is_busy_while_it_has_a_kernel(events, percent, monkeypatch):
    """In a block of a second; kernels that overlap count once. Without events, CUPTI didn't tell."""
    torch, clock = pytest.importorskip("torch"), iter([10.0, 11.0])
    profiled = Mock(**{"events.return_value": events})
    monkeypatch.setattr("torch.profiler.profile", lambda activities: MagicMock(**{"__enter__.return_value": profiled}))
    monkeypatch.setattr("benchmarks.gpu.time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda gpu_id: None)
    with gpu.measure_busy(0) as found:
        pass
    assert found == percent
    with gpu.measure_busy(-1) as found:
        pass
    assert found == []
