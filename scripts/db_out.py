"""Write data sets of Prodigy's database, on a server or in SQLite, to JSONL files, as `prodigy db-out` does."""

import shlex
from pathlib import Path
from typing import Annotated

import yaml
from typer import Argument, echo

from labelwise.console import msg, print_table, progress, run, user_errors
from labelwise.corpus.tasks import DATASETS
from labelwise.sources.db_out import write_datasets
from labelwise.sources.declarations import read_entries

LARGE = 10 * 2**20  # bytes of a file that is for DVC, not for git


def db_out_cli(
    url: Annotated[str, Argument(help="postgresql://user@host/database, mysql://..., or sqlite:///path, no password")],
    datasets: Annotated[list[str], Argument(metavar="DATASET...", help="Names of data sets")],
    out: Annotated[Path, Argument(help="Folder for DATASET.jsonl of each, which is replaced")],
) -> None:
    """Write data sets of Prodigy's database, on a server or in SQLite, to JSONL files, as `prodigy db-out` does."""
    with user_errors("Not all data sets were written"):
        written = write_datasets(url, datasets, out, progress)
    print_table(
        ["Data set", "tasks", "labels"],
        [[name, f"{one.tasks:,}", ", ".join(one.labels)] for name, one in written.items()],
    )
    file = out / DATASETS
    declared = {entry.name for entry in read_entries(file) if entry.path} if file.is_file() else set()
    new = [
        {"name": name, "path": one.path.name, "labels": one.labels}
        for name, one in written.items()
        if name not in declared
    ]
    if new:
        msg.warn(f"Declare in {file}, with the labels that nobody used, too:")
        echo(yaml.safe_dump(new, sort_keys=False, allow_unicode=True))
    msg.info("Record what was written:")
    for one in written.values():
        by_dvc = one.path.with_name(f"{one.path.name}.dvc").exists() or one.path.stat().st_size > LARGE
        echo(shlex.join(["dvc" if by_dvc else "git", "add", str(one.path)]))


if __name__ == "__main__":
    run(db_out_cli)
