"""Write data sets of Prodigy's database, on a server or in SQLite, to JSONL files, as `prodigy db-out` does."""

import shlex
from pathlib import Path
from typing import Annotated

from typer import Argument, echo

from labelwise.console import msg, print_table, progress, run, user_errors
from labelwise.sources.db_out import write_datasets

LARGE = 10 * 2**20  # bytes of a file that is for DVC, not for git


def db_out_cli(
    url: Annotated[str, Argument(help="postgresql://user@host/database, mysql://..., or sqlite:///path, no password")],
    datasets: Annotated[list[str], Argument(metavar="DATASET...", help="Names of data sets")],
    out: Annotated[Path, Argument(help="Folder for DATASET.jsonl of each, which is replaced")],
) -> None:
    """Write data sets of Prodigy's database, on a server or in SQLite, to JSONL files, as `prodigy db-out` does."""
    with user_errors("Not all data sets were written"):
        written = write_datasets(url, datasets, out, progress)
    print_table(["Data set", "tasks"], [[name, f"{tasks:,}"] for name, (_, tasks) in written.items()])
    msg.info(f"A merge of {out} declares them in its datasets.yml, if they aren't")
    msg.info("Record what was written:")
    for path, _ in written.values():
        by_dvc = path.with_name(f"{path.name}.dvc").exists() or path.stat().st_size > LARGE
        echo(shlex.join(["dvc" if by_dvc else "git", "add", str(path)]))


if __name__ == "__main__":
    run(db_out_cli)
