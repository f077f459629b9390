"""The commands that are disturbed, in a small project of which there are two states: what was there, and what comes."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import spacy

from labelwise.compare.revisions import read_revision
from labelwise.console import run
from labelwise.corpus.manifest import SPLITS, find_partitions, read_manifest, read_partition
from labelwise.corpus.pipeline import load_pipeline
from labelwise.files import remove
from labelwise.report.page import make_report
from labelwise.sources.declarations import load_datasets
from scripts.convert_brat import convert_brat_cli
from scripts.db_out import db_out_cli
from scripts.evaluate import evaluate_cli
from scripts.export import export_cli
from scripts.make_demo import make_demo_cli
from scripts.merge import merge_cli
from scripts.package import package_cli
from scripts.report import report_cli
from scripts.train import train_cli
from tests.sources.servers import ProdigyDatabase

CONFIG = Path(__file__).parents[2] / "configs" / "cpu.cfg"
VOLATILE = ("resources.tsv",)  # it tells times
MORE = '{"text": "Two mg of salt, in the year %d."}\n'
PROJECT = "{merge: {docs_per_partition: 6}, package: {version: 1.0.%d}}\n"
DECLARED = "- {name: more, path: more.jsonl, labels: [%s]}\n"


class Command(NamedTuple):
    """A command of the project.

    outputs (tuple[str, ...]): the files and folders that it writes.
    readers (Mapping[str, Callable]): what reads these, if there are several: each takes the project's folder.
    """

    name: str
    function: Callable[..., None]
    arguments: str
    outputs: tuple[str, ...]
    readers: Mapping[str, Callable[[Path], object]] = {}


COMMANDS = (
    Command("make_demo", make_demo_cli, "brat --docs {docs} --labels 3 --words 20", ("brat",)),
    Command("convert_brat", convert_brat_cli, "brat tasks", ("tasks",)),
    Command("db_out", db_out_cli, "sqlite:///prodigy.db person written", ("written",)),
    Command(
        "merge",
        merge_cli,
        "tasks/datasets.yml more.yml corpus --metrics metrics/merge.json --project project.yml --workers 1",
        ("corpus", "metrics/merge.json"),
        {
            "the manifest": lambda root: read_manifest(root / "corpus"),
            "the partitions": lambda root: [find_partitions(root / "corpus" / split) for split in SPLITS],
            "a partition": lambda root: [
                read_partition(one) for split in SPLITS for one in find_partitions(root / "corpus" / split)
            ],
            "a data set": lambda root: load_datasets([root / "again.yml"]),
            "the report": lambda root: make_report(root, "cpu"),
        },
    ),
    Command("export", export_cli, "corpus exported --format brat", ("exported",)),
    Command(
        "train",
        train_cli,
        "small.cfg corpus training/cpu/model-best --curve plots/cpu.tsv --max-steps 4 --resume",
        ("training/cpu/model-best", "plots/cpu.tsv"),
        {"the pipeline": lambda root: load_pipeline(root / "training/cpu/model-best")},
    ),
    Command(
        "evaluate",
        evaluate_cli,
        "training/cpu/model-best corpus/test metrics/cpu.json --tables training/cpu --merge-metrics metrics/merge.json",
        ("metrics/cpu.json", "training/cpu/texts.parquet", "training/cpu/pairs.parquet"),
        {
            "the comparison": lambda root: read_revision("workspace", "cpu", root / "read", root),
        },
    ),
    Command("package", package_cli, "dist --pipeline cpu", ("dist",)),
    Command("report", report_cli, "report/cpu.html --pipeline cpu", ("report/cpu.html",)),
)


def load() -> None:
    """Load what all commands need, so that the processes that are forked have it, and what is disturbed is their work.

    spaCy imports all that is installed for it when it is first asked for a component; PyTorch's threads aren't forked.
    """
    spacy.blank("en").create_pipe("ner")
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def start(
    command: Command,
    folder: Path,
    log: Path,
    docs: int,
    before: Callable[[], Any] | None = None,
    after: Callable[[], Any] | None = None,
) -> int:
    """Start a command in a folder, in a process group of its own, and return the process; it prints to `log`.

    before, after (Callable): called in that process.
    """
    sys.stdout.flush()
    if pid := os.fork():
        # Here as well as there: whichever comes first.
        os.setpgid(pid, pid)
        return pid
    status: Any = 1
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        printed = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        sys.argv = [command.name, *command.arguments.format(docs=docs).split()]
        if before:
            before()
        run(command.function)
    except SystemExit as ended:
        status = ended.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        if after:
            after()
        sys.stderr.flush()
        os._exit(status if isinstance(status, int) else 0 if status is None else 1)


def prepare(root: Path, docs: int, last: str) -> None:
    """Run the commands, undisturbed, for a corpus of some texts, to the last that is needed.

    RAISES (RuntimeError): one fails.
    """
    root.mkdir(parents=True)
    small = re.sub(r"width = 96|rows = \[.*\]", lambda found: SMALLER[found[0][:4]], CONFIG.read_text(encoding="utf8"))
    small = re.sub(r"eval_frequency = \d+|max_steps = \d+", lambda found: SMALLER[found[0][:4]], small)
    (root / "small.cfg").write_text(small, encoding="utf8")
    (root / "more.jsonl").write_text("".join(MORE % year for year in range(docs)), encoding="utf8")
    (root / "project.yml").write_text(PROJECT % docs, encoding="utf8")
    (root / "more.yml").write_text(DECLARED % "CHEMICAL", encoding="utf8")
    (root / "again.yml").write_text("- {name: again, path: corpus, labels: [CHEMICAL]}\n", encoding="utf8")
    database = ProdigyDatabase("sqlite", f"/{root}/prodigy.db")
    database.clear()
    database.add("person", [b'{"text": "Anna %d spoke.", "spans": []}' % number for number in range(docs)])
    for command in COMMANDS:
        log = root.with_suffix(f".{command.name}.log")
        if os.waitpid(start(command, root, log, docs), 0)[1]:
            raise RuntimeError(f"{command.name}: {log.read_text(encoding='utf8')}")
        if command.name == last:
            return


SMALLER = {
    "widt": "width = 16",
    "rows": "rows = [50, 50, 50, 50]",
    "eval": "eval_frequency = 2",
    "max_": "max_steps = 2",
}


def place(command: Command, work: Path, old: Path, new: Path) -> None:
    """Make a folder as it is before a command: its inputs are new, its outputs old."""
    remove(work)
    later = [output for other in COMMANDS[COMMANDS.index(command) :] for output in other.outputs]
    shutil.copytree(new, work)
    for output in later:
        remove(work / output)
    for output in command.outputs:
        (work / output).parent.mkdir(parents=True, exist_ok=True)
        if (old / output).is_dir():
            shutil.copytree(old / output, work / output)
        else:
            shutil.copy2(old / output, work / output)


def outputs(command: Command, root: Path) -> dict[str, bytes]:
    """Read a command's outputs, but for hidden files, such as the merge's cache, and what tells times."""
    roots = [root / output for output in command.outputs]
    files = [file for path in roots for file in ([path] if path.is_file() else sorted(path.rglob("*")))]
    return {
        file.relative_to(root).as_posix(): file.read_bytes()
        for file in files
        if file.is_file()
        and file.name not in VOLATILE
        and not any(part[0] == "." for part in file.relative_to(root).parts)
    }


def leftovers(root: Path) -> list[str]:
    """List what is in the project and in no output: what is needed beside outputs while they are written."""
    return sorted(
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if re.fullmatch(r"\..*\.labelwise\.\w+|.*\.checkpoint|.*\.tmp", path.name)
    )
