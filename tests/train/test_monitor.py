"""Where the time goes, and what training does to the machine."""

import os
from types import SimpleNamespace

import psutil
import pytest

from labelwise.train import clock, monitor
from labelwise.train.clock import Clock
from labelwise.train.monitor import Monitor, idle_gpu, nvml_reader, open_nvml


@pytest.fixture
def wait(monkeypatch):
    """Make the clock one that moves only when it is told to: wait(seconds)."""
    now = [100.0]
    monkeypatch.setattr(clock, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def move(seconds: float) -> None:
        now[0] += seconds

    return move


def test_a_phase_within_another_is_the_inner_ones_alone(wait):
    timed = Clock()
    wait(1)
    with timed.phase("batching"):
        wait(2)
        with timed.phase("reading"):
            wait(4)
        wait(8)
    wait(16)
    assert timed.shares() == {"update": 17 / 31, "batching": 10 / 31, "reading": 4 / 31}
    assert list(timed.shares()) == ["update", "batching", "reading"]


def test_a_phase_ends_with_an_exception(wait):
    timed = Clock()

    def save():
        with timed.phase("saving"):
            wait(3)
            raise KeyError

    with pytest.raises(KeyError):
        save()
    wait(1)
    assert timed.shares() == {"saving": 0.75, "update": 0.25}


def test_what_is_done_with_items_is_not_of_their_phase(wait):
    timed = Clock()

    def items():
        for number in range(2):
            wait(3)
            yield number
        wait(2)

    for _ in timed.during("reading", items()):
        wait(5)
    assert dict(timed.seconds) == {"update": 10, "reading": 8}


def test_the_file_has_a_row_for_each_sample(tmp_path, monkeypatch):
    now = iter([10.0, 10.0, 12.0])
    monkeypatch.setattr(monitor, "time", SimpleNamespace(perf_counter=lambda: next(now)))
    monkeypatch.setattr(monitor, "tree_pss", lambda pid: 3 * 2**20)
    monkeypatch.setattr(monitor, "INTERVAL", 3600)
    with Monitor(tmp_path / "deep" / "r.tsv") as samples:
        samples.step, samples.words = 7, 500
    header, *rows = [line.split("\t") for line in (tmp_path / "deep" / "r.tsv").read_text().splitlines()]
    assert header == ["seconds", "step", "words_per_second", "memory_mb", "cpu_percent"]
    assert [row[:4] for row in rows] == [["0.0", "0", "0", "3"], ["2.0", "7", "250", "3"]]
    assert samples.peak == 3 * 2**20


def test_samples_are_taken_in_the_background(monkeypatch):
    monkeypatch.setattr(monitor, "INTERVAL", 0.01)
    with Monitor() as samples:
        while len(samples.rows) < 4:
            samples._ended.wait(0.01)
    assert len(samples.rows) >= 5
    assert not samples._thread.is_alive()


def test_the_memory_of_a_child_process_counts():
    samples = Monitor()
    samples.sample()
    before = samples.memory
    ready, done = os.pipe(), os.pipe()
    if child := os.fork():
        os.read(ready[0], 1)
        samples.sample()
        during = samples.memory
        os.write(done[1], b"x")
        os.waitpid(child, 0)
        samples.sample()
        assert during - before == pytest.approx(100e6, rel=0.25)
        assert samples.peak == during > samples.memory
    else:
        _held = b"x" * 100_000_000
        os.write(ready[1], b"x")
        os.read(done[0], 1)
        os._exit(0)


def test_a_process_that_is_busy_is_seen():
    """A processor has a hundredth of a second of work or more for each that the loop below runs."""
    samples = Monitor()
    samples.sample()
    end = psutil.Process().cpu_times().user + 0.3
    while psutil.Process().cpu_times().user < end:
        pass
    samples.sample()
    assert 10 < samples.rows[1][4] < 100 * (os.cpu_count() or 1)


def test_a_long_training_keeps_every_second_sample(monkeypatch):
    monkeypatch.setattr(monitor, "MOST_ROWS", 4)
    monkeypatch.setattr(monitor, "tree_pss", lambda pid: 0)
    samples = Monitor()
    for step in range(5):
        samples.step = step
        samples.sample()
    assert [row[1] for row in samples.rows] == [1, 3]
    assert samples.interval == 2 * monitor.INTERVAL


def fake_nvml(percents: list[int]) -> SimpleNamespace:
    """What pynvml has; the GPU's utilization is one after the other, its memory is 2 GB, its power 250.5 W."""
    rest = iter(percents)
    return SimpleNamespace(
        nvmlDeviceGetUtilizationRates=lambda device: SimpleNamespace(gpu=next(rest), memory=1),
        nvmlDeviceGetMemoryInfo=lambda device: SimpleNamespace(used=2 * 2**30, total=80 * 2**30),
        nvmlDeviceGetPowerUsage=lambda device: {"device": 250_500}[device],
    )


def test_a_gpu_has_columns(tmp_path):
    samples = Monitor(tmp_path / "r.tsv", nvml_reader(fake_nvml([93]), "device"))
    samples.sample()
    samples.write(tmp_path / "r.tsv")
    header, row = [line.split("\t") for line in (tmp_path / "r.tsv").read_text().splitlines()]
    assert header[5:] == ["gpu_percent", "gpu_memory_mb", "gpu_power_w"]
    assert row[5:] == ["93", "2048", f"{250.5:.0f}"]


def test_how_busy_a_gpu_was_is_known_of_steps_only(monkeypatch):
    monkeypatch.setattr(monitor, "tree_pss", lambda pid: 0)
    samples = Monitor(None, nvml_reader(fake_nvml([0, 40, 60]), "device"))
    for step in range(3):
        samples.step = step
        samples.sample()
    assert samples.gpu_percent() == 50
    assert Monitor().gpu_percent() is None


def test_there_is_nothing_to_read_on_the_cpu():
    assert open_nvml(-1) is None


@pytest.mark.parametrize(
    ("percent", "shares", "message"),
    [
        (None, {"reading": 0.9}, ""),
        (50.0, {"reading": 0.9}, ""),
        (
            49.0,
            {"update": 0.6, "reading": 0.4},
            "The GPU was 49% busy, because reading took 40% of the time: set `loader` of corpora.train to",
        ),
        (20.0, {"batching": 0.4, "reading": 0.3}, "because batching took 40% of the time: count `words` rather than"),
        (
            20.0,
            {"evaluation": 0.4, "saving": 0.3},
            "because evaluation took 40% of the time: raise training.eval_frequency",
        ),
        (20.0, {"waiting for data": 0.4}, "because waiting for data took 40% of the time: another process prepares"),
        (20.0, {"saving": 0.4}, "because saving took 40% of the time: raise training.eval_frequency: every"),
        (20.0, {"update": 0.92, "reading": 0.08}, "The GPU was 20% busy: its batches are small; raise `size`"),
        (20.0, {}, "its batches are small"),
    ],
)
def test_an_idle_gpu_has_a_reason(percent, shares, message):
    said = idle_gpu(percent, shares)
    assert message in said
    assert bool(said) == bool(message)
