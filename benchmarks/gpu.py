"""Which parts work on a GPU, and how busy it is, step by step, the simplest first: ten minutes.

    make gpu && .venv-gpu/bin/python -m benchmarks.gpu

Each step is a process; its result or error is a row of benchmarks/results/gpu.json as soon as it has ended. No hub is
needed: the transformer has the shape of roberta-base, random weights, and a tokenizer trained here. So speed and memory
are real, and scores aren't. `--gpu-id -1 --tiny` tries what a CPU can, and doesn't write the results.
"""

import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from spacy.util import load_config

from benchmarks.gpu_kit.common import free_memory
from benchmarks.measure import Cell, make_corpus, write_result
from labelwise.base.device import use_gpu
from labelwise.base.files import remove
from labelwise.train.gpu import device_name
from labelwise.train.reader import PartitionedCorpus
from labelwise.train.train_pipeline import train_pipeline
from labelwise.train.training_config import TrainingConfig

OUT = Path("benchmarks/out/gpu")
CONFIG = Path("configs/gpu.cfg")
QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
# Commands run in OUT, which has the configs; the code is here.
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join((str(Path.cwd()), os.environ.get("PYTHONPATH", "")))}
COLUMNS = {"step": "", "seconds": ",.0f", "found": ""}


def make_transformer(corpus: Path, folder: Path, *, tiny: bool) -> None:
    """Make a transformer of roberta-base's shape, or a tiny one, and its tokenizer."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast

    def texts() -> Iterator[str]:
        for doc in islice(PartitionedCorpus(corpus / "train").texts(), 1000):
            yield doc.text

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer.train_from_iterator(texts(), vocab_size=20_000, special_tokens=special)
    tokenizer.save_model(str(folder))
    files = (str(folder / "vocab.json"), str(folder / "merges.txt"))
    RobertaTokenizerFast(*files, model_max_length=512).save_pretrained(folder)
    shape: dict[str, Any] = {"vocab_size": 50265, "max_position_embeddings": 514}
    if tiny:
        shape |= {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    RobertaModel(RobertaConfig(**shape)).save_pretrained(folder)


def run(*command: object) -> str:
    """Run a Python command; return its output.

    RAISES (RuntimeError): if it fails; has the end of its output.
    """
    options: dict[str, Any] = {"cwd": OUT, "env": ENVIRONMENT, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, *map(str, command)], **options, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip()[-300:])
    return done.stdout.strip()


def command(name: str, corpus: Path, transformer: Path, steps: int, gpu_id: int, **changed: Any) -> list[str]:
    """Write a training's config; return its command. Keys have two underscores for a dot."""
    config = load_config(CONFIG, interpolate=False)
    config["training"] |= {"max_steps": steps, "eval_frequency": steps}
    options = ["--corpus", corpus.absolute(), "--gpu-id", gpu_id]
    options += [f"--gpus={changed.pop('gpus')}"] if "gpus" in changed else []
    encoder = config["components"]["ner"]["model"]["tok2vec"]
    encoder["name"], precision = str(transformer.absolute()), changed.pop("precision", "fp16")
    encoder["mixed_precision"], encoder["grad_scaler_config"]["enabled"] = precision != "fp32", precision == "fp16"
    for key, value in changed.items():
        block: Any = config
        *path, last = key.split("__")
        for part in path:
            block = block[part]
        block[last] = value
    (OUT / "configs").mkdir(exist_ok=True)
    config.to_disk(OUT / "configs" / f"{name}.cfg")
    return [str(argument) for argument in ("-m", "scripts.train", name, *options)]


def train(*args: Any, **changed: Any) -> str:
    """Train some steps; describe where the time went."""
    output = " ".join(run(*command(*args, **changed)).split())
    match = re.search(r"[\d,]+ words? in .*? per second", output)
    halved = output.count("out of memory at")
    parts = [match[0] if match else output[-200:], f"memory ran out {halved} times" if halved else ""]
    resources = OUT / f"training/{args[0]}/resources.tsv"
    header, *_, last = [line.split("\t") for line in resources.read_text().splitlines()]
    parts += [f"{name} {value}" for name, value in zip(header, last, strict=True) if name.startswith("gpu_")]
    return "; ".join(filter(None, parts))


def resume(*args: Any, **changed: Any) -> str:
    """Kill a training once it has a checkpoint, and resume it.

    RAISES (RuntimeError): if it ends before, or starts over.
    """
    arguments, checkpoint = command(*args, **changed), OUT / f"training/{args[0]}/model-best.checkpoint"
    remove(checkpoint)
    process = subprocess.Popen([sys.executable, *arguments], cwd=OUT, env=ENVIRONMENT, **QUIET)
    while not (checkpoint / "state.json").is_file():
        if process.poll() is not None:
            raise RuntimeError("the training ended before it was killed")
        time.sleep(0.01)
    process.kill()
    process.wait()
    match = re.search(r"Resuming from step \d+", run(*arguments, "--resume"))
    if not match:
        raise RuntimeError("the training started over")
    return match[0]


def train_in_less(corpus: str, transformer: str, gpu_id: str) -> None:
    """Train in 60 % of a batch of short texts' memory, besides what the process keeps.

    RAISES (RuntimeError): if the batch isn't divided.
    """
    import torch

    block = "components.ner.model.tok2vec"
    overrides = {
        "training.eval_frequency": 2,
        "corpora.train.max_words": 200,
        "labelwise.few_words": 0,
        f"{block}.name": transformer,
        f"{block}.mixed_precision": False,
        f"{block}.grad_scaler_config.enabled": False,
    }
    config = Path(__file__).parents[1] / CONFIG
    training = TrainingConfig(config, Path(corpus), overrides=overrides, max_steps=2, gpu_id=int(gpu_id))
    train_pipeline(training, "fits", "fits.tsv")
    peak, reserved = torch.cuda.max_memory_reserved(), free_memory()
    limit = reserved + 0.6 * (peak - reserved)
    torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.get_device_properties(int(gpu_id)).total_memory)
    trained = train_pipeline(training, "halve", "halve.tsv")
    if not trained or not trained.state.sub_batch:
        raise RuntimeError(f"{peak / 2**20:,.0f} MB were needed, {limit / 2**20:,.0f} MB allowed: nothing was divided")
    print(f"{trained.state.sub_batch:,} words at a time in {limit / 2**20:,.0f} of {peak / 2**20:,.0f} MB")


def losses(name: str) -> str:
    """Read the last logged losses."""
    header, *_, last = [line.split("\t") for line in (OUT / f"plots/{name}.tsv").read_text().splitlines()]
    return ", ".join(f"{key} {value}" for key, value in zip(header, last, strict=True) if key.startswith("loss"))


@contextmanager
def measure_busy(gpu_id: int) -> Iterator[list[int]]:
    """Measure the percentage of a block's time during which a GPU computes.

    CUPTI times the kernels for PyTorch, at some cost. NVML's utilization is 100 % while a process merely has kernels to
    launch.

    gpu_id (int): negative for the CPU, which isn't measured.
    YIELDS (list[int]): the percentage, after the block; nothing without kernels.
    """
    percent: list[int] = []
    if gpu_id < 0:
        yield percent
        return
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        torch.cuda.synchronize(gpu_id)
        start = time.perf_counter()
        yield percent
        torch.cuda.synchronize(gpu_id)
        seconds = time.perf_counter() - start
    on_device = (event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA)
    kernels = sorted((event.time_range.start, event.time_range.end) for event in on_device)
    busy, reached = 0.0, -math.inf
    for first, last in kernels:  # kernels that overlap count once
        busy += max(0.0, last - max(first, reached))
        reached = max(reached, last)
    if kernels:
        percent.append(min(100, round(100 * busy / 1e6 / seconds)))  # from microseconds


def evaluate(name: str, split: Path, gpu_id: int, texts: int) -> str:
    """Evaluate a pipeline with a number of texts per batch; return its speed."""
    model = OUT / "training" / name / "model-best"
    config = load_config(model / "config.cfg", interpolate=False)
    config["nlp"]["batch_size"] = texts
    config.to_disk(model / "config.cfg")
    printed = run("-m", "scripts.evaluate", name, "--split", split.absolute(), "--gpu-id", gpu_id)
    match = re.search(r"[\d,]+ words? (?:a|per) second", " ".join(printed.split()))
    return match[0] if match else printed[-200:]


def main(
    corpus: Annotated[Path | None, typer.Option(help="Merged corpus; one of 2,000 texts is made if not given")] = None,
    gpu_id: Annotated[int, typer.Option(help="Number of the GPU")] = 0,
    steps: Annotated[int, typer.Option(help="Steps of each training")] = 50,
    tiny: Annotated[bool, typer.Option("--tiny", help="A tiny transformer")] = False,
) -> None:
    """Take the steps in order; write the table after each."""
    OUT.mkdir(parents=True, exist_ok=True)
    rows: list[list[Cell]] = []
    on_gpu = gpu_id >= 0

    def step(name: str, work: Callable[..., str], *args: Any, **options: Any) -> None:
        start = time.perf_counter()
        try:
            result = work(*args, **options)
        except Exception as error:  # whatever fails, what comes after may work
            result = f"FAILED: {error}"
        rows.append([name, time.perf_counter() - start, " ".join(result.split())])
        print(*rows[-1], sep="\n   ", flush=True)
        if on_gpu:
            write_result("gpu", COLUMNS, rows, note=f"On {machine}.")

    machine = "a GPU that can't be used"
    if on_gpu:
        query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
        step("driver", lambda: subprocess.check_output(query, text=True))
        step("CUDA's libraries", run, "-c", "import cupy, cupy.cublas; cupy.show_config()")
    try:
        use_gpu(gpu_id)
        machine = device_name(gpu_id)
    finally:
        step("thinc", lambda: machine)
    merged = corpus or make_corpus(2000, OUT)
    transformer = OUT / "transformer"
    make_transformer(merged, transformer, tiny=tiny)
    for precision in ("fp32", "fp16", "bf16"):
        step(f"{steps} steps in {precision}", train, precision, merged, transformer, steps, gpu_id, precision=precision)
    step("a training that is killed", resume, "killed", merged, transformer, steps, gpu_id)
    if on_gpu:
        limited = "import sys; from benchmarks.gpu import train_in_less; train_in_less(*sys.argv[1:])"
        step("a batch that doesn't fit", run, "-c", limited, merged.absolute(), transformer.absolute(), gpu_id)
    for texts in (16, 256):
        step(f"evaluation, {texts} texts", evaluate, "fp32", merged / "dev", gpu_id, texts)
    for precision in ("fp16", "bf16"):
        step(f"evaluation in {precision}", evaluate, precision, merged / "dev", gpu_id, 256)
    if on_gpu:
        step("evaluation on the CPU", evaluate, "bf16", merged / "dev", -1, 256)
    if on_gpu and int(run("-c", "import cupy; print(cupy.cuda.runtime.getDeviceCount())")) > 1:
        step("losses on one GPU", losses, "fp32")
        step("two GPUs", train, "two", merged, transformer, steps, gpu_id, precision="fp32", gpus=2)
        step("losses on two GPUs", losses, "two")


if __name__ == "__main__":
    typer.run(main)
