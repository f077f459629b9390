"""Take a snapshot of data sets in a Prodigy database on a PostgreSQL or MySQL server, to merge it."""

from pathlib import Path
from typing import Annotated

from tqdm import tqdm
from typer import Argument, Option

from labelwise.commands.console import msg, print_table, user_errors
from labelwise.common.wording import counted
from labelwise.sources.declarations import load_servers
from labelwise.sources.prodigy_server import take_snapshots


def fetch_prodigy_cli(
    datasets: Annotated[list[Path], Argument(help="datasets.yml files, or folders that have one")],
    out: Annotated[Path, Argument(help="Folder for the snapshot, which is replaced")],
    snapshot: Annotated[str, Option(help="Any name; what was taken under it is kept")] = "",
    servers: Annotated[str, Option(help="Hosts that may get a password, separated by spaces or commas")] = "",
) -> None:
    """Take a snapshot of the data sets that are declared with the address of a server as their `db`."""
    with user_errors("Nothing was fetched"):
        declared = load_servers(datasets)
        with tqdm(unit=" tasks", disable=None, dynamic_ncols=True) as bar:

            def tell(name: str, tasks: int) -> None:
                """Move the bar on."""
                bar.set_description(name, refresh=False)
                bar.update(tasks)

            taken = take_snapshots(declared, out, snapshot, servers, tell)
    if not taken:
        msg.info("No data set is declared on a server: nothing to fetch")
        return
    rows = [[name, one.db, f"{one.tasks:,}", one.sha256[:12]] for name, one in taken.items()]
    print_table(["Data set", "database", "tasks", "sha256"], rows)
    total = sum(one.tasks for one in taken.values())
    msg.good(f"{out} has {counted(total, 'task')}")
    msg.info("To fetch later annotations, change `snapshot` in project.yml")
