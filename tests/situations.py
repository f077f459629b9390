r"""Situations of a machine and of a training, each with what a command says: `python -m tests.situations [CLONE...]`.

Prints a table, a row for each situation: how the command ended, and its message, with the code of each clone. Behind a
clone of earlier code, a file with a command of sed a line rewrites the commands that this code had otherwise:

    python -m tests.situations /tmp/earlier=earlier.sed .
    s,scripts.train (\w+),scripts.train configs/\1.cfg corpus training/\1/model-best --curve plots/\1.tsv,
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
CODE = ("configs", "labelwise", "scripts", "spacy_per_label")
# A merged corpus of few texts, and a trained pipeline.
MADE = (
    "scripts.make_demo brat --docs 60 --labels 3 --words 30",
    "scripts.convert_brat brat tasks",
    "scripts.merge tasks/datasets.yml corpus --workers 1",
    "scripts.train cpu --max-steps 4",
)
TRAIN = "python -m scripts.train own --max-steps 4"
MERGE = "python -m scripts.merge tasks/datasets.yml merged"
PREDICT = "python -m scripts.predict training/cpu/model-best tasks --out raw.jsonl"
# A new file system, which this command alone sees.
SHM = "unshare -m sh -c 'mount -t tmpfs -o ro none /dev/shm && {}'"
MOUNT = f"unshare -m sh -c 'mount -t tmpfs -o {{}} none training && {TRAIN}'"
LEARN = {"max_steps": "60", "epochs": "0", "eval_frequency": "15"}
MANY = 2 + (os.cpu_count() or 1)  # processes


class Situation(NamedTuple):
    """A situation, and what a command says then.

    says (str): a regular expression that its output has, with each run of white space as one space.
    command (str): of a shell.
    edits (Mapping): keys of configs/cpu.cfg, and their values in configs/own.cfg.
    status (int): the exit status.
    """

    name: str
    says: str
    command: str = TRAIN
    edits: Mapping[str, str] = {}
    status: int = 1


TRAINING = (
    Situation(
        "patience ends a training",
        r"patience = 10 .*ended training at step 30 of 60",
        "python -m scripts.train own",
        edits={**LEARN, "patience": "10", "learn_rate": "0.0"},
        status=0,
    ),
    Situation("a training that finds nothing", r"^(?!.*✔).*⚠ .*finds nothing", status=0),
    Situation(
        "a loss that isn't finite, on the CPU",
        r"Remedy: a lower learn_rate in \[training\.optimizer\]",
        "python -m scripts.train own",
        edits={**LEARN, "learn_rate": "1e30"},
    ),
)
MACHINE = (
    Situation("a closed standard output", r"^$", f"{MERGE} >&-", status=0),
    Situation("closed standard streams", r"^$", f"{MERGE} <&- >&- 2>&-", status=0),
    Situation("a full standard output", r"standard output: No space left", f"{MERGE} > /dev/full"),
    Situation("a standard output that nobody reads", r"^$", f"{MERGE} | true; exit ${{PIPESTATUS[0]}}"),
    Situation("a read-only /dev/shm, merge", r"✘ .*/dev/shm: .*workers", SHM.format(f"{MERGE} --workers 2")),
    Situation("a read-only /dev/shm, predict", r"✘ .*/dev/shm: .*workers", SHM.format(f"{PREDICT} --workers 2")),
    Situation("a read-only /dev/shm, train", r"✘ .*/dev/shm: .*workers", SHM.format(f"{TRAIN} --workers 2")),
    Situation("more workers than cores, merge", rf"⚠ {MANY} workers", f"{MERGE} --workers {MANY}", status=0),
    Situation("more workers than cores, train", rf"⚠ {MANY} workers", f"{TRAIN} --workers {MANY}", status=0),
    Situation("more workers than cores, predict", rf"⚠ {MANY} workers", f"{PREDICT} --workers {MANY}", status=0),
    *(
        Situation(
            f"900 MB of addresses, with PyTorch, {name}",
            r"✘ .*(memory|ulimit)",
            f"export WITH_TORCH=1; ulimit -v 900000; {command}",
        )
        for name, command in (("merge", f"{MERGE} --workers 1"), ("train", TRAIN))
    ),
    Situation("few open files", r"✘ .*Too many open files; raise .*ulimit -n", f"ulimit -n 8; {MERGE}"),
    Situation("files that may not grow", r"✘ .*File too large; raise .*ulimit -f", f"ulimit -f 8; {TRAIN}"),
    Situation("a read-only folder", r"✘ .*training.*: Read-only file system; write elsewhere", MOUNT.format("ro")),
    Situation("a full disk", r"✘ .*training.*: No space left on device; free some space", MOUNT.format("size=100k")),
)
SITUATIONS = TRAINING + MACHINE


def copy_code(folder: Path, clone: Path) -> None:
    """Put the code of a clone into a folder."""
    for name in CODE:
        shutil.copytree(clone / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "training").mkdir()


def make_project(folder: Path, clone: Path, rewrite: str) -> None:
    """Make what the situations need, by the code of a clone.

    rewrite (str): file of sed's commands, for commands that the clone has otherwise.
    """
    copy_code(folder, clone)
    for command in MADE:
        ended, said = run(folder, f"python -m {command}", rewrite)
        assert ended == 0, said


def run(folder: Path, command: str, rewrite: str = "") -> tuple[int, str]:
    """Run a command of a shell in a folder, and return its status and its output, each white space as one space."""
    if rewrite:
        command = subprocess.check_output(["sed", "-Ef", rewrite], input=command, text=True)
    given = os.environ | {"PYTHONPATH": str(ROOT / "tests/subprocesses"), "COLUMNS": "400"}
    given["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{given['PATH']}"
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=given, capture_output=True, timeout=300, check=False)
    return done.returncode, " ".join((done.stdout + done.stderr).decode(errors="replace").split())


def meet(one: Situation, project: Path, folder: Path, rewrite: str = "") -> tuple[int, str]:
    """Run a situation's command in a copy of a project.

    RAISES (LookupError): if its config lacks a key that the situation edits.
    """
    shutil.copytree(project, folder, symlinks=True)
    text = (folder / "configs/cpu.cfg").read_text(encoding="utf8")
    for key, value in one.edits.items():
        text, edited = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text, count=1)
        if not edited:
            raise LookupError(f"configs/cpu.cfg has no {key}")
    (folder / "configs/own.cfg").write_text(text, encoding="utf8")
    return run(folder, one.command, rewrite)


def is_right(one: Situation, status: int, said: str) -> bool:
    """Return whether a command ended as it should, said what it should, and showed no traceback."""
    return status == one.status and bool(re.search(one.says, said)) and "Traceback" not in said


def main(clones: Sequence[str]) -> None:
    """Print the table."""
    given = [clone.partition("=")[::2] for clone in clones or [str(ROOT)]]
    print(f"| situation | {' | '.join(clone for clone, _ in given)} |\n|---|{'---|' * len(given)}")
    with TemporaryDirectory() as temporary:
        projects = []
        for number, (clone, file) in enumerate(given):
            project, rewrite = Path(temporary, f"project-{number}"), file and str(Path(file).resolve())
            project.mkdir()
            make_project(project, Path(clone).resolve(), rewrite)
            projects.append((project, rewrite))
        for one in SITUATIONS:
            cells = []
            for project, rewrite in projects:
                folder = Path(temporary, "folder")
                try:
                    status, said = meet(one, project, folder, rewrite)
                    told = said[said.index("✘") :] if "✘" in said else said[-300:]
                    cells.append(f"{'right' if is_right(one, status, said) else 'WRONG'}, {status}: {told[:300]}")
                except LookupError as error:
                    cells.append(f"–: {error}")
                shutil.rmtree(folder)
            print(f"| {one.name} | {' | '.join(cell.replace('|', '/') for cell in cells)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
