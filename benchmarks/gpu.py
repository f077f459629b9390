"""Speed, memory and utilization of training on a GPU: each precision at equal batches; what fits; a whole train-gpu.

    make gpu && .venv-gpu/bin/python -m benchmarks.gpu

No hub is needed: the transformer has the shape of roberta-base, random weights, and a tokenizer that is trained here.
So speed and memory are a real one's, and scores aren't. Without a GPU, `--gpu-id -1 --tiny` tries it all on the CPU.
"""

import json
from collections.abc import Iterator
from math import isnan
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import spacy
import typer

from benchmarks.measure import measure, write_result
from benchmarks.training import make_corpus, train_steps
from labelwise.common.device import device_name, use_gpu
from labelwise.train.reader import read_docs

OUT = Path("benchmarks/out/gpu")
CONFIG = Path("configs/gpu.cfg")
PRECISIONS = ["fp32", "fp16", "bf16"]
BUSY, FASTER = 85, 1.8  # aims: percent that the GPU is busy, and times fp32's words per second


def make_transformer(corpus: Path, folder: Path, *, tiny: bool) -> None:
    """Make a transformer of roberta-base's shape, or a tiny one, and a tokenizer for a corpus."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast

    def texts() -> Iterator[str]:
        for number, doc in enumerate(read_docs(corpus / "train", spacy.blank("en"))):
            if number == 1000:
                return
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


def train(corpus: Path, transformer: Path, gpu_id: int, steps: int, *options: str) -> dict[str, float]:
    """Train for `steps` steps; return the means of what the monitor saw in them, and the most memory."""
    given = ["--gpu-id", str(gpu_id), "--transformer-name", str(transformer), *options]
    _, rows = train_steps(CONFIG, corpus, OUT, steps, *given)
    # What a GPU can't tell at some moment is NaN.
    columns = {name: [row[name] for row in rows if not isnan(row[name])] for name in rows[0]}
    seen = {name: mean(values) for name, values in columns.items() if values}
    return seen | {"gpu_memory_mb": max(columns.get("gpu_memory_mb") or [0.0])}


def main(
    corpus: Annotated[Path | None, typer.Option(help="Merged corpus; one of 2,000 texts is made if not given")] = None,
    gpu_id: Annotated[int, typer.Option(help="Number of the GPU")] = 0,
    steps: Annotated[int, typer.Option(help="Steps of each training")] = 100,
    tiny: Annotated[bool, typer.Option("--tiny", help="A tiny transformer")] = False,
) -> None:
    """Measure, and write the table with the hardware's name."""
    use_gpu(gpu_id)
    OUT.mkdir(parents=True, exist_ok=True)
    corpus = corpus or make_corpus(2000, OUT)
    transformer = OUT / "transformer"
    make_transformer(corpus, transformer, tiny=tiny)
    seen = {}
    for precision in PRECISIONS:
        seen[precision] = train(corpus, transformer, gpu_id, steps, "--precision", precision)
    found, scores = OUT / "batch_size.json", OUT / "scores.json"
    given = [CONFIG, corpus, found, "--gpu-id", gpu_id, "--transformer-name", transformer]
    given += ["--memory", "3GB", "--precision", "fp32"] if gpu_id < 0 else ["--precision", "fp16"]
    search = measure("scripts.find_batch_size", *map(str, given))
    whole = train(corpus, transformer, gpu_id, 3 * steps, "--precision", "fp16", "--batch-size", str(found))
    measure("scripts.evaluate", *map(str, [OUT / "model", corpus / "dev", scores, "--gpu-id", gpu_id]))
    rows = []
    for name, row in {**seen, "fp16, after find-batch-size": whole}.items():
        rate = row["words_per_second"]
        gpu = [row.get(column) for column in ("gpu_memory_mb", "gpu_percent", "gpu_power_w")]
        rows.append((name, rate, rate / seen["fp32"]["words_per_second"], *gpu))
    columns = {"training": "", "words per second": ",.0f", "of fp32": ".2f", "GPU memory, MB": ",.0f"}
    write_result("gpu", columns | {"GPU busy, %": ",.0f", "power, W": ",.0f"}, rows, note=f"On {device_name(gpu_id)}.")
    print(f"\nfind_batch_size took {search.seconds:.0f} seconds: {json.loads(found.read_text())}")
    print(f"F on dev, of random weights: {json.loads(scores.read_text())['all_gold']['f']:.4f}")
    fastest = max(seen[name]["words_per_second"] for name in ("fp16", "bf16")) / seen["fp32"]["words_per_second"]
    busy = max(row.get("gpu_percent", 0.0) for row in seen.values())
    print(f"Busy: {busy:.0f}% (aim: {BUSY}); half precision against fp32: {fastest:.2f} (aim: {FASTER})")


if __name__ == "__main__":
    typer.run(main)
