"""Record the results of `weasel run` in DVC, if the pipeline, its corpus and its scores belong together."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, run, user_errors
from labelwise.base.errors import InputError
from labelwise.base.sections import check_pipeline, stage_of
from labelwise.corpus.record import check_corpus
from labelwise.evaluate.results import check_evaluated, load_results

COMMIT = ("dvc", "commit", "--quiet", "--force", "--with-deps")


def record_cli(
    pipeline: Annotated[str, typer.Argument(help="Name of a config, such as cpu: the stage evaluate@cpu")] = "cpu",
) -> None:
    """Record the results of `weasel run` in DVC, if the pipeline, its corpus and its scores belong together."""
    root, stage = Path(), stage_of("evaluate", pipeline)
    with user_errors("Nothing was recorded"):
        check_pipeline(pipeline)
        metrics = load_results(root, pipeline).metrics
        check_corpus(root / "training" / pipeline / "model-best", root / "corpus")
        check_evaluated(root, pipeline, metrics)
        done = subprocess.run([sys.executable, "-m", *COMMIT, stage], check=False)  # noqa: S603
        if done.returncode:
            raise InputError(f"`{' '.join(COMMIT)} {stage}` failed: DVC's message above says why")
    msg.good(f"DVC has recorded {stage} and the stages before it; `git add -A` and commit")


if __name__ == "__main__":
    run(record_cli)
