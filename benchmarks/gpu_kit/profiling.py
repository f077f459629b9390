"""Profile training steps: kernels, their shares of the time, and the GPU's waits."""

import gzip
import importlib
import shutil
import statistics
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu_kit.common import CPU, OUT, WHERE, WORK, Steps, tell, transformer, wait, wanted

MARKS = [  # the parts of a step, by the names of functions
    ("labelwise.train.updates", "fix_random_seed"),
    ("spacy_per_label.transformer", "find_own_pieces"),
    ("spacy_per_label.shim", "make_tables"),
    ("spacy_per_label.component", "loss_and_gradient"),
    ("labelwise.train.loop", "update_within_memory"),
    ("labelwise.train.loop", "sum_gradients"),
]
OF_SHIM = ("transformer forward", "transformer backward", "AdamW of the transformer", "finish_update")
CALLS: tuple[str, ...] = ("cudaStreamSync", "cudaDeviceSync", "cudaEventSync", "cudaMemcpy", "cudaMalloc", "cudaFree")
CALLS += ("cudaLaunchKernel", "cuLaunchKernel", "cudaHostAlloc")
FIRST, COUNT = (2, 2) if CPU else (20, 5)  # steps
MAX_TRACE_BYTES = 15 * 2**20  # bytes
Shapes = list[tuple[int, ...]]


def marked(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Name a function in the profile."""
    from torch.profiler import record_function

    def call(*args: Any, **named: Any) -> Any:
        with record_function(name):
            return function(*args, **named)

    return call


def mark_all() -> Shapes:
    """Name the parts of a step; return the list that gets the shapes of the transformer's tables."""
    from spacy_per_label.component import PerLabelRecognizer
    from spacy_per_label.shim import TransformerShim

    for module, name in MARKS:
        imported = importlib.import_module(module)
        setattr(imported, name, marked(name, getattr(imported, name)))
    shapes: Shapes = []
    begin: Any = marked("transformer forward", TransformerShim.begin_update)

    def begin_update(self: Any, inputs: Any) -> Any:
        shapes.append(tuple(inputs.kwargs["input_ids"].shape))
        output, backprop = begin(self, inputs)
        return output, marked("transformer backward", backprop)

    replaced: dict[Any, dict[str, Any]] = {
        TransformerShim: {
            "begin_update": begin_update,
            "finish_update": marked("AdamW of the transformer", TransformerShim.finish_update),
        },
        PerLabelRecognizer: {"finish_update": marked("finish_update", PerLabelRecognizer.finish_update)},
    }
    for owner, names in replaced.items():
        for name, function in names.items():
            setattr(owner, name, function)
    return shapes


def main() -> None:
    """Train, and profile steps in the middle."""
    import torch
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as torch_profile

    from labelwise.train.train_pipeline import train_pipeline

    shapes = mark_all()
    profiler = torch_profile(activities=[ProfilerActivity.CPU] + ([] if CPU else [ProfilerActivity.CUDA]))
    clock: dict[str, Any] = {}
    caught: list[Any] = []
    catching = warnings.catch_warnings(record=True)

    def at(step: int, training: Any) -> None:
        if step == FIRST - 1:
            wait()
            shapes.clear()
            profiler.start()
            clock["start"] = time.perf_counter()
        elif step == FIRST + COUNT - 1:
            wait()
            clock["seconds"] = time.perf_counter() - clock["start"]
            profiler.stop()
            clock["shapes"] = shapes[: len(shapes) // COUNT]
            tell(ms_per_step_profiled=round(1000 * clock["seconds"] / COUNT, 1), tables=clock["shapes"])
        elif step == FIRST + COUNT + 1:  # in the next step, each of PyTorch's waits for the GPU is a warning
            caught.append(catching.__enter__())
            warnings.simplefilter("always")
            if not CPU:
                torch.cuda.set_sync_debug_mode("warn")
        elif step == FIRST + COUNT + 2:
            if not CPU:
                torch.cuda.set_sync_debug_mode("default")
            catching.__exit__(None, None, None)

    Steps(at)
    options = {"corpora.dev.limit": 4}
    train_pipeline(wanted("roberta", "bf16", FIRST + COUNT + 5, **options), WORK / "profiled", WORK / "profiled.tsv")
    waits = Counter(
        f"{'/'.join(Path(event.filename).parts[-3:])}:{event.lineno}: {str(event.message)[:90]}" for event in caught[0]
    )
    tell(torch_waits=waits.total())
    describe(profiler, clock, waits)
    tell(**time_alone(clock["shapes"]))
    trace(profiler)


def describe(profiler: Any, clock: dict[str, Any], waits: Counter[str]) -> None:
    """Write the profile's tables, and print their totals per step."""
    averages = profiler.key_averages()
    device_sort = "self_cpu_time_total" if CPU else "self_cuda_time_total"
    with (OUT / "profile.txt").open("a") as file:
        file.write(f"===== {COUNT} steps, {clock['seconds']:.3f} s; tables of a step: {clock['shapes']}\n")
        for key in dict.fromkeys((device_sort, "self_cpu_time_total", "cpu_time_total")):
            table = averages.table(sort_by=key, row_limit=28, max_name_column_width=70)
            file.write(f"\n===== by {key}\n{table}")
        lines = "".join(f"{number:4d} {text}\n" for text, number in waits.most_common(40))
        file.write(f"\n===== PyTorch's waits for the GPU in a step\n{lines}")
    marks = {name for _, name in MARKS} | set(OF_SHIM)
    tell(
        host_ms={
            average.key: round(average.cpu_time_total / 1000 / COUNT, 1) for average in averages if average.key in marks
        }
    )
    events = list(profiler.events())
    calls = Counter(event.name for event in events if event.name.startswith(CALLS))
    tell(calls_per_step={name: round(number / COUNT, 1) for name, number in calls.most_common(12)})
    tell_gaps(events, marks, clock["seconds"])


def tell_gaps(events: Sequence[Any], marks: set[str], seconds: float) -> None:
    """Print how long the GPU waits, by the host's innermost mark when a gap began."""
    import torch

    devices = torch.autograd.DeviceType
    kind = devices.CPU if CPU else devices.CUDA  # on a CPU, products stand for kernels
    kernels = sorted(
        (event.time_range.start, event.time_range.end)
        for event in events
        if event.device_type == kind and event.name not in marks and (not CPU or "mm" in event.name)
    )
    spans = sorted(
        (
            (event.time_range.start, event.time_range.end, event.name)
            for event in events
            if event.device_type == devices.CPU and event.name in marks
        ),
        key=lambda span: span[1] - span[0],
    )
    reached, busy = kernels[0][0], 0.0
    waiting: defaultdict[str, float] = defaultdict(float)
    for start, end in kernels:
        if start > reached:
            inside = next((name for a, b, name in spans if a <= reached <= b), "between")
            waiting[inside] += start - reached
        busy += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    gaps = {name: round(value / 1000 / COUNT, 1) for name, value in sorted(waiting.items(), key=lambda gap: -gap[1])}
    tell(gpu_busy_ms=round(busy / 1000 / COUNT, 1), gpu_busy_percent=round(100 * busy / 1e6 / seconds))
    tell(kernels_per_step=round(len(kernels) / COUNT), gpu_waits_ms=gaps)


def time_alone(shapes: Shapes) -> dict[str, float]:
    """Time tables of these shapes in the same transformer, by PyTorch alone: a step's lower bound."""
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(str(transformer("roberta"))).to(WHERE).train()
    ids = [torch.randint(5, 1000, shape, device=WHERE) for shape in shapes]
    masks = [torch.ones(shape, device=WHERE) for shape in shapes]
    for mask in masks:  # padding somewhere, or the mask is left out
        mask[::2, -1] = 0
    measured = {}
    for name, masked in (("floor_ms", False), ("floor_with_mask_ms", True)):
        times = []
        for _ in range(8):
            wait()
            begun = time.perf_counter()
            for table, mask in zip(ids, masks, strict=True):
                with torch.autocast(WHERE, dtype=torch.bfloat16):
                    output = model(input_ids=table, **({"attention_mask": mask} if masked else {}))
                    output.last_hidden_state.float().sum().backward()
            wait()
            times.append(1000 * (time.perf_counter() - begun))
        measured[name] = round(statistics.median(times[3:]), 1)
    return measured


def trace(profiler: Any) -> None:
    """Write the trace for Perfetto, if it is small enough to be copied back."""
    profiler.export_chrome_trace(str(WORK / "trace.json"))
    target = OUT / "trace.json.gz"
    with (WORK / "trace.json").open("rb") as source, gzip.open(target, "wb") as packed:
        shutil.copyfileobj(source, packed)
    if target.stat().st_size > MAX_TRACE_BYTES:
        target.unlink()
