"""The stages of device.sh: python -m benchmarks.gpu_kit.stages NAME[-ARGUMENT...].

Each prints its results as lines `RESULT {json}`, intermediate ones at once. KIT_CPU=1 tries a stage, tiny, on a CPU.
"""

import json
import math
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from benchmarks.gpu_kit.common import (
    CONFIG,
    CPU,
    GPU_ID,
    OUT,
    SMALL,
    SPENT,
    STEPS,
    WLP,
    WORK,
    Steps,
    clocked,
    free_memory,
    last_row,
    speed,
    start,
    stream,
    tell,
    transformer,
    transformer_overrides,
    wanted,
    watch,
    watched,
)

MEASURED = ("gpu_memory_mb", "waiting_percent", "memory_mb")


def check() -> None:
    """Run the checks of check.py."""
    from benchmarks.gpu_kit.check import main

    main(GPU_ID)


def warm() -> None:
    """Read packages, make the transformer, compile kernels and start CUPTI once, so later stages are faster."""
    begun = time.perf_counter()
    from labelwise.train.train_pipeline import train_pipeline

    tell(imports_s=round(time.perf_counter() - begun, 1))
    transformer("roberta")
    import spacy_transformers  # noqa: F401
    import torch

    tell(all_imports_s=round(time.perf_counter() - begun, 1))
    if not CPU:
        torch.ones(1, device="cuda")
        tell(cuda_s=round(time.perf_counter() - begun, 1))
    clock_all()
    steps = Steps()
    options = {"corpora.dev.limit": 4}
    train_pipeline(wanted("roberta", "bf16", 3, **options), WORK / "warm", WORK / "warm.tsv")
    first = [round(1000 * (b - a)) for a, b in zip([steps.begun, *steps.times], steps.times, strict=False)]
    tell(steps_ms=first, seconds_of_all=round(time.perf_counter() - begun, 1))


def clock_all() -> None:
    """Time a training besides its steps."""
    from labelwise.train import loop
    from labelwise.train import train_pipeline as run

    for owner, name in (
        (run, "prepare"),
        (run, "save_pipeline"),
        (run, "finish"),
        (loop, "evaluate"),
        (run.CheckpointSaver, "save"),
        (run.CheckpointSaver, "_write"),
    ):
        clocked(owner, name)


def train(kind: str, precision: str, tables: str = "") -> None:
    """Train, and measure the speed; score MiniLM on test.

    tables (str): "t1" puts all windows of a batch into one table, "t2" into two at most.
    """
    begun = time.perf_counter()
    import spacy_per_label.windows as layer
    from labelwise.train.parameters import find_scalers
    from labelwise.train.train_pipeline import train_pipeline

    tell(imports_s=round(time.perf_counter() - begun, 1))
    if tables:
        layer.MAX_TABLES = int(tables[1:])
    learns, scales = kind == "minilm" and not CPU, []
    clock_all()
    steps = Steps(lambda step, training: scales.append(training))
    folder = WORK / "-".join(filter(None, (kind, precision, tables)))
    messages: list[str] = []
    curve, resources = folder.with_suffix(".tsv"), folder.with_suffix(".resources.tsv")
    config = wanted(kind, precision, 150 if learns else STEPS)
    trained = train_pipeline(config, folder, curve, resources=resources, log=messages.append)
    assert trained
    memory: dict[str, Any] = {name: value for name, value in last_row(resources).items() if name in MEASURED}
    row = last_row(curve)
    loss = float(row["loss_ner"])
    memory |= {"loss": loss, "finite": math.isfinite(loss), "skipped": trained.state.skipped}
    memory |= {"dev_f": row.get("ents_f"), "said": messages}
    first, last = round(steps.times[0] - begun, 1), round(time.perf_counter() - begun, 1)
    tell(**steps.tell(), **memory, seconds_to_first_step=first, seconds_of_all=last)
    scale = [float(scaler._scale.item()) for scaler in find_scalers(scales[-1].nlp)]
    tell(seconds_beside_steps=SPENT, scale=scale)  # 1024 at first
    scales.clear()
    if kind == "minilm":
        from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline

        done = evaluate_pipeline(folder, WLP / ("dev" if CPU else "test"), gpu_id=GPU_ID)
        tell(test_f=done.metrics.all_gold.f, evaluated_words_per_second=round(done.words / done.seconds))


def peer_command(folder: Path) -> list[str]:
    """Return the command of `spacy train`; on a CPU in fp32, with few texts."""
    options: list[object] = ["--paths.train", WLP / "train", "--paths.dev", WLP / "dev", "--gpu-id", GPU_ID]
    if CPU:
        options += ["--components.transformer.model.mixed_precision", "false"]
        options += ["--components.transformer.model.grad_scaler_config.enabled", "false"]
        options += ["--corpora.train.limit", 40, "--corpora.dev.limit", 4]
    code = Path(__file__).with_name("peer.py")
    return watched("spacy", "train", folder / "peer.cfg", "--code", code, *options)


def peer(kind: str) -> None:
    """Run `spacy train` with spacy-transformers and ner, fp16, on the same texts and size of batches."""
    from benchmarks.gpu_kit.peer import write_config

    folder = WORK / f"peer-{kind}"
    folder.mkdir(exist_ok=True)
    steps = 150 if kind == "minilm" and not CPU else STEPS
    rate = 2e-4 if kind == "minilm" else 5e-5
    write_config(folder / "peer.cfg", str(transformer(kind)), steps, 300 if CPU else 6000, 1, rate)
    environment = os.environ | {"PEER_OUT": str(folder / "told.json")}
    *_, ended = stream(peer_command(folder), env=environment)
    record = json.loads((folder / "told.json").read_text())
    words = [sum(record["words"][: number + 1]) for number in range(len(record["words"]))]
    count = min(len(words), len(record["times"]))
    losses = {name: round(value, 1) for name, value in record["losses"].items()}
    tell(**speed(record["times"][:count], words[:count]), gpu_memory_mb=round(record["memory"] / 2**20), loss=losses)
    tell(dev_f=record["scores"].get("ents_f"), ended=ended)


def resume_command() -> list[str]:
    """Return the command of a training to kill, in its config's folder."""
    steps = 8 if CPU else 40
    return watched("scripts.train", "gpu", "--corpus", WLP, "--gpu-id", GPU_ID, "--max-steps", steps)


def resume() -> None:
    """Kill a training once it has a checkpoint, and resume it; count leftover processes."""
    import psutil
    from spacy.util import load_config

    folder = WORK / "resume"
    (folder / "configs").mkdir(parents=True, exist_ok=True)
    changes = {"training.eval_frequency": 10} | SMALL | transformer_overrides("roberta", "bf16")
    if CPU:
        changes["training.eval_frequency"] = 2
    load_config(CONFIG, changes, interpolate=False).to_disk(folder / "configs" / "gpu.cfg")
    shutil.rmtree(folder / "training", ignore_errors=True)
    command, checkpoint = resume_command(), folder / "training" / "gpu" / "model-best.checkpoint"
    state, begun = checkpoint / "state.json", time.perf_counter()
    process = start(command, cwd=folder)
    while not state.is_file() and process.poll() is None:
        time.sleep(0.02)
    if process.poll() is not None:
        print(process.stdout and process.stdout.read())
        raise SystemExit("the training ended before it had a checkpoint")
    time.sleep(0 if CPU else 0.3)  # in the middle of a step
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.5)
    alive = [child.pid for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
    tell(killed_after_s=round(time.perf_counter() - begun, 1), children=len(children), alive_after_kill=len(alive))
    tell(step=json.loads(state.read_text())["step"])
    begun = time.perf_counter()
    *output_lines, ended = stream([*command, "--resume"], cwd=folder)
    match = re.search(r"Resuming from step \d+", "\n".join(output_lines))
    tell(resumed=match and match[0], ended=ended, seconds_resumed=round(time.perf_counter() - begun, 1))
    if ended == "exit 0":
        tell(last=last_row(folder / "plots" / "gpu.tsv"))
    sys.exit(not match or ended != "exit 0")


def pytest_command() -> list[str]:
    """Return the command of the tests that need a GPU; on a CPU, with a pretended one."""
    command = watched("pytest", "-p", "no:cacheprovider", "-q", "--durations=6", "-ra")
    return command + (["tests/train/test_on_a_gpu.py"] if CPU else ["-m", "gpu", "tests/train/test_gpu.py"])


def pytest() -> None:
    """Run the project's own tests that need a GPU."""
    *output_lines, ended = stream(pytest_command())
    failed = [line[:300] for line in output_lines if line.startswith(("FAILED", "ERROR"))]
    summary = [line for line in output_lines if re.match(r"=* ?\d+ (passed|failed|skipped|error)", line)]
    tell(said=summary[-1:], failed=failed, ended=ended)
    sys.exit(ended != "exit 0")


def halve() -> None:
    """Train with less memory than a batch of many short texts takes, so that it is divided.

    The limit is what a process keeps, and a share of the batch's memory.
    """
    from labelwise.train.train_pipeline import train_pipeline

    messages: list[str] = []
    cuda = limited_cpu() if CPU else __import__("torch").cuda
    texts = {"corpora__train__max_words": 100 if CPU else 200, "training__batcher__size": 1000 if CPU else 6000}
    train_pipeline(wanted("roberta", "fp32", 3, **texts), WORK / "fits", WORK / "fits.tsv", log=messages.append)
    peak, total = cuda.max_memory_reserved(), cuda.get_device_properties(0).total_memory
    tell(reserved_mb=peak // 2**20, left_after_training_mb=free_memory() // 2**20)
    config = wanted("roberta", "fp32", 3 if CPU else 6, **texts)
    for share in (0.6,) if CPU else (0.7, 0.5):
        tell(**{f"at_{share}": attempt(config, share, peak, total, cuda, messages)})
    tell(said=[line for line in messages if "memory" in line][:8])
    sys.exit(not any("out of memory" in line for line in messages))


def attempt(config: Any, share: float, peak: int, total: int, cuda: Any, messages: list[str]) -> Any:
    """Train within a share of memory; return the result. The error is dropped, or it would keep the pipeline."""
    from labelwise.train.train_pipeline import train_pipeline

    reserved = free_memory()
    cuda.reset_peak_memory_stats()
    cuda.set_per_process_memory_fraction((reserved + share * (peak - reserved)) / total)
    try:
        done = train_pipeline(config, WORK / "halved", WORK / "halved.tsv", log=messages.append)
    except Exception as error:  # a text alone may be too much
        return f"{type(error).__name__}: {error}"[:300]
    assert done
    loss = last_row(WORK / "halved.tsv")["loss_ner"]
    return {"sub_batch": done.state.sub_batch, "loss": loss, "peak_mb": cuda.max_memory_reserved() // 2**20}


def limited_cpu() -> Any:
    """Return a stand-in for torch.cuda, whose memory runs out on tables with more cells than its limit."""
    from types import SimpleNamespace

    import torch

    from spacy_per_label.shim import TransformerShim

    begin: Any = TransformerShim.begin_update
    cells: list[int] = []
    limits: list[float] = []

    def begin_update(self: Any, inputs: Any) -> Any:
        cells.append(inputs.kwargs["input_ids"].numel())
        if limits and cells[-1] > limits[-1]:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return begin(self, inputs)

    TransformerShim.begin_update = begin_update  # type: ignore[method-assign]
    return SimpleNamespace(
        max_memory_reserved=lambda: max(cells),
        get_device_properties=lambda number: SimpleNamespace(total_memory=1),
        set_per_process_memory_fraction=limits.append,
        reset_peak_memory_stats=lambda: None,
    )


def steady() -> None:
    """Train 500 steps; record every 100 steps the memory, which should stay flat."""
    import psutil

    from labelwise.train.train_pipeline import train_pipeline

    host, device, every = [], [], 3 if CPU else 100

    def note(step: int, training: Any) -> None:
        if step and step % every == 0:
            host.append(round(psutil.Process().memory_info().rss / 2**20))
            if not CPU:
                import torch

                device.append(round(torch.cuda.memory_allocated() / 2**20))
            tell(host_mb=host, gpu_allocated_mb=device)

    steps = Steps(note)
    config = wanted("minilm", "bf16", 9 if CPU else 500, training__batcher__size=300 if CPU else 2000)
    train_pipeline(config, WORK / "steady", WORK / "steady.tsv")
    tell(**steps.tell())


def overflow() -> None:
    """Let a gradient overflow in fp16: that step should change no parameter, and halve the scale."""
    from labelwise.train.parameters import find_parameters, find_scalers
    from labelwise.train.train_pipeline import train_pipeline

    options: dict[str, Any] = {}
    if CPU:  # thinc's scaler is for GPUs; PyTorch's function for it runs on a CPU as well
        from thinc.shims.pytorch_grad_scaler import PyTorchGradScaler

        scale: Any = lambda self, tensor, *args: tensor.mul_(self._scale)  # noqa: E731
        PyTorchGradScaler._scale_tensor = scale  # type: ignore[method-assign]
        options["components__ner__model__tok2vec__grad_scaler_config"] = {"enabled": True}
    too_much = 2.0 ** (126 if CPU else 40)
    recorded: dict[str, list[Any]] = {}

    def values(training: Any) -> list[Any]:
        tensors = (parameter.tensor for parameter in find_parameters(training.nlp) if parameter.tensor is not None)
        return [tensor.detach().clone() for tensor in tensors]

    def changed(training: Any) -> int:
        now = values(training)
        return sum(not bool((a == b).all()) for a, b in zip(recorded["values"], now, strict=True))

    def inject(step: int, training: Any) -> None:
        scalers = find_scalers(training.nlp)
        if step == 1:
            recorded["values"] = values(training)
            scalers[0]._scale.fill_(too_much)
        elif step == 2:
            tell(changed_by_overflow=changed(training), scale_halved=float(scalers[0]._scale) == too_much / 2)
            scalers[0]._scale.fill_(1024.0)
        elif step == 3:
            tell(changed_after_overflow=changed(training), scale=float(scalers[0]._scale))

    Steps(inject)
    train_pipeline(wanted("roberta", "fp16", 6, **options), WORK / "overflow", WORK / "overflow.tsv")
    tell(loss=last_row(WORK / "overflow.tsv")["loss_ner"])


def evaluate() -> None:
    """Measure words per second of evaluations in one process, and profile the last one."""
    import cProfile
    import pstats

    from spacy.util import load_config

    from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline

    speeds, split = {}, WLP / ("dev" if CPU else "test")
    trained = [WORK / name for name in ("roberta-bf16", "minilm-bf16") if (WORK / name).is_dir()]
    for model in trained:
        for batch_size in (32, 256):
            config = load_config(model / "config.cfg", interpolate=False)
            config["nlp"]["batch_size"] = batch_size
            config.to_disk(model / "config.cfg")
            for _ in range(1 if CPU else 2):  # the second is told
                done = evaluate_pipeline(model, split, gpu_id=GPU_ID)
            speeds[f"{model.name} {batch_size}"] = round(done.words / done.seconds)
            tell(words_per_second=speeds)
    if not trained:
        raise SystemExit("no stage has trained a pipeline: run train-minilm-bf16 first")
    profiler = cProfile.Profile()
    profiler.enable()
    evaluate_pipeline(trained[-1], split, gpu_id=GPU_ID)
    profiler.disable()
    with (OUT / "profile.txt").open("a") as file:
        file.write("\n===== evaluation, by own time\n")
        pstats.Stats(profiler, stream=file).strip_dirs().sort_stats("tottime").print_stats(25)


def profile() -> None:
    """Profile five steps; see profiling.py."""
    from benchmarks.gpu_kit.profiling import main

    main()


def floor() -> None:
    """Time the same shape of transformer by PyTorch alone: 32 texts of 128 wordpieces, forward and backward."""
    from benchmarks.gpu_kit.profiling import time_alone

    tell(**time_alone([(4, 16) if CPU else (44, 128)]))


def benchmarks_command() -> list[str]:
    """Return the command of the project's check-gpu, with fewer steps."""
    options = ["--corpus", WLP, "--steps", 4 if CPU else 20, *(["--gpu-id", "-1", "--tiny"] if CPU else [])]
    return watched("benchmarks.gpu", *options)


def benchmarks() -> None:
    """Run the project's own check-gpu."""
    lines = []
    for line in stream(benchmarks_command()):
        lines.append(line.strip())
        if "FAILED" in line:
            tell(failed=[line[:300] for line in lines if "FAILED" in line])
        if Path("benchmarks/results/gpu.json").is_file() and not CPU:
            shutil.copyfile("benchmarks/results/gpu.json", OUT / "gpu.json")
    tell(ended=lines[-1], lines=len(lines))
    sys.exit(lines[-1] != "exit 0")


ALL: tuple[Callable[..., None], ...] = (
    check,
    warm,
    train,
    peer,
    resume,
    pytest,
    halve,
    steady,
    overflow,
    evaluate,
    profile,
    floor,
    benchmarks,
)
STAGES = {stage.__name__: stage for stage in ALL}


def main(stage: str) -> None:
    """Run a stage."""
    watch()
    name, *parts = stage.split("-")
    STAGES[name](*parts)


if __name__ == "__main__":
    typer.run(main)
