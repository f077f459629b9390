"""Code of all stages: paths, results, and timed steps."""

import faulthandler
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

CPU = bool(os.environ.get("KIT_CPU"))
GPU_ID, WHERE = (-1, "cpu") if CPU else (0, "cuda")
KIT = Path(os.environ.get("KIT", ".whl")).absolute()  # packages, corpora and weights, from prepare.sh
WORK = Path(os.environ.get("KIT_WORK", "/tmp/gpukit-work")).absolute()
OUT = Path(os.environ.get("OUT", ".out")).absolute()
WLP, LITBANK = KIT / "wlp", KIT / "litbank"
CONFIG = Path("configs/gpu.cfg")
SKIP = 2 if CPU else 10  # the first steps compile kernels and fill memory pools
# On a CPU: small batches, and few texts.
SMALL: dict[str, Any] = {"training.batcher.size": 300, "corpora.train.limit": 40, "corpora.dev.limit": 4} if CPU else {}
STEPS = 6 if CPU else 60
SAID_AT = (2, 4) if CPU else (1, 10, 20, 40, 80, 120, 200, 300, 400)  # steps with an intermediate result
BEFORE_LIMIT = 3  # seconds
SPENT: defaultdict[str, list[float]] = defaultdict(list)  # seconds outside of steps, by function


def tell(**results: Any) -> None:
    """Print results, which `row` collects."""
    print("RESULT " + json.dumps(results, default=float), flush=True)


def watch() -> None:
    """Dump the tracebacks of all threads shortly before the stage's limit ($KIT_UNTIL, seconds since 1970)."""
    if until := os.environ.get("KIT_UNTIL"):
        seconds = float(until) - time.time() - BEFORE_LIMIT
        faulthandler.dump_traceback_later(max(1, seconds), file=2)


def watched(module: str, *arguments: object) -> list[str]:
    """Return the command of `python -m module` that dumps its tracebacks as well."""
    return [str(argument) for argument in (sys.executable, "-m", "benchmarks.gpu_kit.watched", module, *arguments)]


def stream(command: Sequence[str], **options: Any) -> Iterator[str]:
    """Run a command, and print and yield its lines. The last line is `exit STATUS`."""
    process = start(command, **options)
    assert process.stdout
    for line in process.stdout:
        print(line, end="", flush=True)
        yield line.rstrip("\n")
    yield f"exit {process.wait()}"


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[str]:
    """Start a command with a pipe for its output."""
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def wait() -> None:
    """Wait for the GPU."""
    if not CPU:
        import torch

        torch.cuda.synchronize()


def transformer(kind: str) -> Path:
    """Find MiniLM, or make a transformer of roberta-base's shape with random weights, once; tiny ones on a CPU."""
    if kind == "minilm" and not CPU:
        return KIT / "minilm"
    folder = WORK / kind
    if not folder.is_dir():
        scratch = WORK / f"{kind}.{os.getpid()}"
        if kind == "minilm":  # its first layer
            shutil.copytree(KIT / "minilm", scratch)
            config = json.loads((scratch / "config.json").read_text()) | {"num_hidden_layers": 1}
            (scratch / "config.json").write_text(json.dumps(config))
        else:
            from benchmarks.gpu import make_transformer

            begun = time.perf_counter()
            make_transformer(WLP, scratch, tiny=CPU)
            tell(transformer_made_s=round(time.perf_counter() - begun, 1))
        try:
            scratch.rename(folder)
        except OSError:  # a stage beside this one was faster
            shutil.rmtree(scratch)
    return folder


def overridden(steps: int, **overrides: Any) -> dict[str, Any]:
    """Return the config's overrides for a number of steps; keys have two underscores for a dot."""
    dotted = {name.replace("__", "."): value for name, value in overrides.items()}
    return {"training.eval_frequency": steps} | SMALL | dotted


def wanted(kind: str, precision: str, steps: int, **overrides: Any) -> Any:
    """Return a training of a transformer; see `overridden`."""
    from labelwise.train.training_config import TrainingConfig

    return TrainingConfig(
        CONFIG,
        WLP,
        max_steps=steps,
        gpu_id=GPU_ID,
        overrides=overridden(steps, **overrides) | transformer_overrides(kind, precision),
    )


def transformer_overrides(kind: str, precision: str) -> dict[str, Any]:
    """Return the overrides of configs/gpu.cfg for a transformer, in fp16 (with a scaler), bf16 or fp32."""
    block = "components.ner.model.tok2vec"
    return {
        f"{block}.name": str(transformer(kind)),
        f"{block}.mixed_precision": precision != "fp32",
        f"{block}.grad_scaler_config.enabled": precision == "fp16",
    }


class Steps:
    """Times the steps of trainings in this process, and prints intermediate results.

    at (Callable): called after each step, with its number and the training.
    """

    def __init__(self, at: Callable[[int, Any], None] = lambda step, training: None) -> None:
        """Replace the training loop by a timed one."""
        from benchmarks.gpu import measure_busy
        from labelwise.train import ahead
        from labelwise.train import train_pipeline as run

        if CPU:
            ahead.MIN_GPU_ID = -1  # another process prepares batches on a CPU, too
        self.times: list[float] = []
        self.words: list[int] = []
        self.gpu_percent: list[int] = []  # of each step before an evaluation
        self.begun = time.perf_counter()
        original: Any = run.train_while_improving

        def timed(training: Any) -> Iterator[Any]:
            tell(seconds_to_training=round(time.perf_counter() - self.begun, 1))
            steps, every = original(training), training.settings["eval_frequency"]
            while True:
                measured = (training.state.step + 2) % every == 0
                with measure_busy(GPU_ID if measured else -1) as percent:
                    info = next(steps, None)
                if info is None:
                    return
                self.gpu_percent += percent
                self.times.append(time.perf_counter())
                self.words.append(training.state.words)
                at(training.state.step, training)
                if len(self.times) in SAID_AT:
                    self.tell_so_far()
                yield info

        run.train_while_improving = timed

    def tell_so_far(self) -> None:
        """Print the steps' times until now."""
        count = len(self.times)
        gaps = [b - a for a, b in zip(self.times[count // 2 :], self.times[count // 2 + 1 :], strict=False)]
        timings: dict[str, Any] = {f"seconds_to_step_{count}": round(self.times[-1] - self.begun, 1)}
        if gaps:
            timings[f"ms_until_step_{count}"] = round(1000 * statistics.median(gaps), 1)
        tell(**timings)

    def tell(self) -> dict[str, Any]:
        """Return the speed of all steps, and the share of time during which the GPU computed."""
        return speed(self.times, self.words) | {"gpu_percent": self.gpu_percent}


def clocked(owner: Any, name: str) -> None:
    """Time each call of a function."""
    function = getattr(owner, name)

    def call(*args: Any, **named: Any) -> Any:
        begun = time.perf_counter()
        try:
            return function(*args, **named)
        finally:
            SPENT[name.strip("_")].append(round(time.perf_counter() - begun, 2))
            tell(seconds_beside_steps=SPENT)

    setattr(owner, name, call)


def speed(times: Sequence[float], words: Sequence[int]) -> dict[str, Any]:
    """Compute words per second after the first steps, without the last two (the measured step, and the evaluation)."""
    gaps = [b - a for a, b in zip(times[SKIP - 1 : -2], times[SKIP:-2], strict=False)]
    if not gaps:
        return {"steps": len(times)}
    count, seconds = len(gaps), times[-3] - times[SKIP - 1]
    return {
        "steps": len(times),
        "words_per_second": round((words[-3] - words[SKIP - 1]) / seconds),
        "ms_per_step": round(1000 * statistics.median(gaps), 1),
        "ms_least": round(1000 * min(gaps), 1),
        "ms_most": round(1000 * max(gaps), 1),
        "words_per_step": round((words[-3] - words[SKIP - 1]) / count),
    }


def free_memory() -> int:
    """Free the memory of ended trainings; return the bytes that PyTorch still reserves."""
    import gc

    from thinc.backends import context_pools

    gc.collect()
    for pool in context_pools.get().values():
        pool.free_all_blocks()
    if CPU:
        return 0
    import torch

    torch.cuda.empty_cache()
    return torch.cuda.memory_reserved()


def last_row(path: Path) -> dict[str, str]:
    """Read a TSV file's last row, by column."""
    header, *_, last = [line.split("\t") for line in path.read_text().splitlines()]
    return dict(zip(header, last, strict=True))
