"""Find out how much a device can be given at a time, so that training doesn't run out of its memory."""

import json
from pathlib import Path
from typing import Annotated

import typer

from labelwise.commands.console import msg, user_errors
from labelwise.common.errors import InputError
from labelwise.common.files import staged
from labelwise.common.memory import parse_size
from labelwise.train.batch_size import SHARE, find_batch_size
from labelwise.train.recipe import Recipe, Recognizer

Option = typer.Option


def find_batch_size_cli(
    config: Annotated[Path, typer.Argument(help="spaCy config")],
    corpus: Annotated[Path, typer.Argument(help="Folder that the merge wrote")],
    out: Annotated[Path, typer.Argument(help="JSON file for the result, such as training/gpu/batch_size.json")],
    gpu_id: Annotated[int, Option(help="Number of the GPU; -1 for the CPU, with --memory")] = 0,
    memory: Annotated[str, Option(help="On the CPU: the memory that training may have, such as 2GB")] = "",
    transformer_name: Annotated[str, Option(help="Name (on the hub) or folder of the transformer")] = "",
    precision: Annotated[str, Option(help="fp16 | bf16 | fp32, of a transformer")] = "",
    init_from: Annotated[str, Option(help="Name or folder of a pipeline that training starts from")] = "",
    recognizer: Annotated[Recognizer, Option(help="A head for each label, or spaCy's ner")] = "per-label",
) -> None:
    """Find the largest batch that fits into memory, and write most of it where training picks it up."""
    with user_errors("No batch size was found"):
        if (gpu_id < 0) != bool(memory):
            raise InputError(
                f"--gpu-id {gpu_id}, --memory {memory!r}: give a GPU, or the CPU (-1) and a size such as 2GB"
            )
        recipe = Recipe(
            config,
            corpus,
            gpu_id=gpu_id,
            transformer_name=transformer_name,
            precision=precision,
            recognizer=recognizer,
            init_from=init_from,
        )
        with staged(out) as path:
            found = find_batch_size(recipe, report, memory=parse_size(memory) if memory else 0)
            path.write_text(json.dumps(found._asdict(), indent=1) + "\n", encoding="utf8")
    msg.good(f"{found.device}: {found.size:,} {found.unit} ({SHARE:.0%} of the largest that fitted) is in {out}")


def report(cost: int, fitted: bool) -> None:
    """Print what was tried."""
    print(f"{cost:>10,} {'fits' if fitted else 'does not fit'}", flush=True)
