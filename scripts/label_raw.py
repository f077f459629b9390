"""Make the corpus of a student: the merged corpus's gold, and a teacher's predictions of raw texts."""

from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, print_counts, progress, run, user_errors
from labelwise.base.text import counted
from labelwise.base.workers import choose_workers
from labelwise.corpus.pipeline import gpu_of
from labelwise.student.corpus import make_student_corpus

Option = typer.Option


def label_raw_cli(
    student: Annotated[str, typer.Argument(help="Name of a config, such as student: training/student/corpus")],
    teacher: Annotated[str, Option(help="Name of a trained pipeline, such as small; or its folder")] = "small",
    inputs: Annotated[Path, Option(help="Folder of raw texts, .txt or .jsonl")] = Path("assets/raw"),
    corpus: Annotated[Path, Option(help="Folder of the merged corpus")] = Path("corpus"),
    gpu_id: Annotated[int | None, Option(help="Number of the GPU; -1 for the CPU; default: the config's")] = None,
    workers: Annotated[int, Option(help="Processes that predict, on the CPU")] = 1,
) -> None:
    """Make the corpus of a student: the merged corpus's gold, and a teacher's predictions of raw texts."""
    out, model = Path("training", student, "corpus"), Path("training", teacher, "model-best")
    model = model if model.is_dir() else Path(teacher)
    with user_errors("No raw text was annotated"):
        gpu_id = gpu_of(model / "config.cfg") if gpu_id is None else gpu_id
        raw, problems = make_student_corpus(
            model, [inputs], corpus, out, workers=choose_workers(workers, gpu_id), gpu_id=gpu_id, progress=progress
        )
    print_counts("Raw texts that can't be used", problems)
    print_counts("Raw texts that are left out", raw.left_out)
    msg.good(f"{counted(raw.texts, 'raw text')} of {counted(raw.words, 'word')} beside the gold: {out}")


if __name__ == "__main__":
    run(label_raw_cli)
