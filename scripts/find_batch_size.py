"""Find out how much a device can be given at a time, so that training doesn't run out of its memory."""

import json
from pathlib import Path
from typing import Annotated

import typer

from labelwise.console import msg, run, user_errors
from labelwise.files import staged
from labelwise.train.batch_size import find_batch_size
from labelwise.train.recipe import Precision, Recipe, Recognizer

Option = typer.Option


def find_batch_size_cli(
    config: Annotated[Path, typer.Argument(help="spaCy config")],
    corpus: Annotated[Path, typer.Argument(help="Folder that the merge wrote")],
    out: Annotated[Path, typer.Argument(help="JSON file for the result, such as training/gpu/batch_size.json")],
    gpu_id: Annotated[int, Option(help="Number of the GPU")] = 0,
    transformer_name: Annotated[str, Option(help="Name (on the hub) or folder of the transformer")] = "",
    precision: Annotated[Precision, Option(help="fp16 | bf16 | fp32, of a transformer")] = "",
    recognizer: Annotated[Recognizer, Option(help="A head for each label, or spaCy's ner")] = "per-label",
) -> None:
    """Find how many words fit into the GPU's memory at a time, and write that where training picks it up."""
    with user_errors("No batch size was found"):
        recipe = Recipe(
            config,
            corpus,
            gpu_id=gpu_id,
            transformer_name=transformer_name,
            precision=precision,
            recognizer=recognizer,
        )
        with staged(out) as path:
            found = find_batch_size(recipe, report)
            path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")
    msg.good(f"{found['device']}: {found['words']:,} words fit at a time; train-gpu reads that in {out}")


def report(cost: int, fitted: bool) -> None:
    """Print what was tried."""
    print(f"{cost:>10,} {'fits' if fitted else 'does not fit'}", flush=True)


if __name__ == "__main__":
    run(find_batch_size_cli)
