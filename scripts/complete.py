"""Complete the texts in train with what a per-label pipeline finds, so that spaCy's ner can learn from them."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from labelwise.common.portable import make_portable
from labelwise.complete.run import Completion, complete
from labelwise.train.pipeline import Recognizer, training_overrides
from scripts.console import msg, print_counts, print_table, run, user_errors, warn_implausible

Option = typer.Option
YesNo = Literal["no", "yes"]


def complete_cli(
    config: Annotated[Path, typer.Argument(help="spaCy config")],
    corpus: Annotated[Path, typer.Argument(help="Folder that the merge wrote")],
    out: Annotated[Path, typer.Argument(help="Folder for the completed texts, such as training/cpu/completed")],
    recognizer: Annotated[Recognizer, Option(help="What will be trained; only ner needs complete texts")] = "ner",
    gpu_id: Annotated[int, Option(help="Number of the GPU; -1 for the CPU")] = -1,
    seed: Annotated[int, Option(help="Random seed")] = 0,
    max_steps: Annotated[int, Option(help="Number of updates; 0 for what the config says")] = 0,
    transformer_name: Annotated[str, Option(help="Name (on the hub) or folder of the transformer")] = "",
    precision: Annotated[str, Option(help="fp16 | bf16 | fp32, of a transformer")] = "",
    init_from: Annotated[str, Option(help="Name or folder of a pipeline to start from")] = "",
    batch_size: Annotated[Path | None, Option(help="JSON file that scripts.find_batch_size has written")] = None,
    portable: Annotated[YesNo, Option(help="Compute what every x86-64-v3 processor does, to the byte; no GPU")] = "no",
    workers: Annotated[int, Option(help="Processes that share each batch on the CPU")] = 1,
    resume: Annotated[bool, Option("--resume", help="Resume where the same training was killed")] = False,
) -> None:
    """Complete the texts in train with what a per-label pipeline finds, so that spaCy's ner can learn from them."""
    with user_errors("Nothing was completed"):
        if portable == "yes":
            make_portable()
        completion = complete(
            config,
            corpus,
            out,
            recognizer=recognizer,
            gpu_id=gpu_id,
            overrides=training_overrides(config, seed, max_steps, transformer_name, precision, gpu_id),
            init_from=init_from,
            batch_size=batch_size,
            resume=resume,
            workers=workers,
            tell=msg.info,
        )
    print_completion(completion)
    msg.good(f"{out} says what was done")


def print_completion(completion: Completion) -> None:
    """Say what was filled in, and what wasn't, and why."""
    if completion.skipped:
        msg.info(f"Nothing to complete: {completion.skipped}")
        return
    print_counts("Texts in train", completion.texts)
    outcomes = sorted({outcome for counts in completion.spans.values() for outcome in counts})
    rows = [[label, *(counts.get(name, 0) for name in outcomes)] for label, counts in completion.spans.items()]
    print_table(["Found where the label isn't known", *outcomes], rows)
    for label, why in completion.outside.items():
        msg.warn(f"{label}: {why}, so nothing was filled in; what is unmarked counts as no entity")
    warn_implausible(completion.rates)


if __name__ == "__main__":
    run(complete_cli)
