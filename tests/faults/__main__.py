"""Disturb every command of a small project: nothing partial may appear, and the next run makes the same bytes.

    python -m tests.faults                                 # 10 of each fault for each command
    python -m tests.faults --fault kills --trials 1000 --command merge    # at every single write

1. `kills`: SIGKILL before the Nth writing, opening, closing, renaming or deleting of a file in the project.
2. `writes`: the Nth of these fails (a disk error or a full disk, in turn). The command fails, and names the folder,
   without a traceback.

Afterwards, the outputs are as they were, all of them, or new, all of them, or every reader refuses them. Then the
command is run again, undisturbed, and makes them new. It needs Linux and gcc.
"""

import ctypes
import errno
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from labelwise.errors import InputError
from tests.faults.commands import COMMANDS, Command, leftovers, load, outputs, place, prepare, start
from tests.faults.mutations import MUTATIONS

OLD, NEW = 10, 14  # texts of the corpus that was there, and of the one that comes
FAULTS = ("kills", "writes")
SOURCE = Path(__file__).with_name("writes.c")
LIBRARY = "LABELWISE_FAULTS"  # the variable that names the compiled library


class Trials:
    """A command, and the folders in which it is disturbed.

    writes (int): that it makes.
    """

    def __init__(self, command: Command, root: Path) -> None:
        """Run the command once, undisturbed.

        RAISES (RuntimeError): it fails.
        """
        self.command, self.root, self.work = command, root, root / "work"
        self.log = root / "log"
        self.place()
        self.old = outputs(command, self.work)
        status, printed = self.wait(self.start(lambda: count_writes(self.work, -1, 0), count=True))
        self.new = outputs(command, self.work)
        if status or self.old == self.new or self.new != outputs(command, root / "new"):
            raise RuntimeError(f"{command.name}: {status}: {printed}")
        self.writes = int((self.root / "count").read_text(encoding="ascii"))

    def place(self) -> None:
        """Bring back what was there before the command."""
        place(self.command, self.work, self.root / "old", self.root / "new")

    def start(self, before: Callable[[], object] = lambda: None, *, count: bool = False) -> int:
        """Start the command; return its process."""
        after = self.note_count if count else None
        return start(self.command, self.work, self.root / "log", NEW, before, after)

    def note_count(self) -> None:
        """Write down how many writes have been counted."""
        (self.root / "count").write_text(str(library().faults_count()), encoding="ascii")

    def wait(self, process: int) -> tuple[int, str]:
        """Wait for a process; return its status, and what it printed."""
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        return status, (self.root / "log").read_text(encoding="utf8", errors="replace")

    def again(self) -> Iterator[str]:
        """Run the command undisturbed, and say what isn't as it should be then."""
        status, printed = self.wait(self.start())
        if status:
            yield f"the next run fails: {printed[-500:]}"
        now = outputs(self.command, self.work)
        if now != self.new:
            differ = [name for name in {**now, **self.new} if now.get(name) != self.new.get(name)]
            yield f"the next run makes other bytes: {differ[:5]}"
        if left := leftovers(self.work):
            yield f"the next run leaves {left}"

    def partial(self) -> Iterator[str]:
        """Say who takes outputs that are neither as they were nor new."""
        now = outputs(self.command, self.work)
        if now in (self.old, self.new, {}):  # what isn't there is refused
            return
        different = [name for name in {**now, **self.old, **self.new} if now.get(name) != self.old.get(name)]
        if not self.command.readers:
            yield f"it is neither old nor new: {different[:5]}"
        for name, read in self.command.readers.items():
            try:
                read(self.work)
            except InputError:
                continue
            yield f"a mixture is taken: {name}: {different[:5]}"

    def kills(self, number: int) -> Iterator[str]:
        """Kill the command before a write."""
        self.wait(self.start(lambda: count_writes(self.work, number, 0)))
        yield from self.partial()

    def writes_fail(self, number: int) -> Iterator[str]:
        """Have a write fail."""
        error = (errno.EIO, errno.ENOSPC)[number % 2]
        status, printed = self.wait(self.start(lambda: count_writes(self.work, number, error)))
        if status == 0 and outputs(self.command, self.work) != self.new:
            yield "it says that all is well"
        if status and not any(
            Path(output).name in printed or Path(output).parent.name in printed
            for output in (str(self.work / output) for output in self.command.outputs)
        ):
            yield f"it names no folder: {printed[-300:]}"
        if "Traceback" in printed:
            yield f"a traceback: {printed[-700:]}"
        yield from self.partial()


def library() -> ctypes.CDLL:
    """Return the library that has been preloaded."""
    return ctypes.CDLL(os.environ[LIBRARY])


def count_writes(folder: Path, at: int, error: int) -> None:
    """Count the writes in a folder from now on, and have one fail, or end all, if the error is 0."""
    library().faults_begin(os.fsencode(folder), ctypes.c_long(at), error)


def disturb(trials: Trials, fault: str, times: int, rng: random.Random) -> tuple[int, Counter[str]]:
    """Disturb a command by a fault; return how often, and what wasn't as it should be."""
    broken: Counter[str] = Counter()
    numbers = range(1, trials.writes + 1)
    for number in numbers if len(numbers) <= times else sorted(rng.sample(numbers, times)):
        trials.place()
        found = trials.kills(number) if fault == "kills" else trials.writes_fail(number)
        for what in (*found, *trials.again()):
            print(f"{trials.command.name}, {fault} {number}: {what}", file=sys.stderr, flush=True)
            broken[what.partition(":")[0]] += 1
    return min(times, len(numbers)), broken


def main(
    fault: Annotated[list[str] | None, typer.Option(help=f"{', '.join(FAULTS)}; all by default")] = None,
    command: Annotated[list[str] | None, typer.Option(help="Commands; all by default")] = None,
    trials: Annotated[int, typer.Option(help="The most of each fault for each command")] = 10,
    seed: Annotated[int, typer.Option(help="Of the moments")] = 0,
    mutation: Annotated[str, typer.Option(help=f"Of the code, which has to be seen: {', '.join(MUTATIONS)}")] = "",
) -> None:
    """Disturb commands, and print what was tried and what wasn't as it should be."""
    faults = fault or list(FAULTS)
    if LIBRARY not in os.environ:
        with TemporaryDirectory() as folder:
            compiled = Path(folder) / "writes.so"
            subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(compiled), str(SOURCE), "-ldl"], check=True)
            environment = {**os.environ, "LD_PRELOAD": str(compiled), LIBRARY: str(compiled)}
            arguments = [sys.executable, "-m", "tests.faults", *sys.argv[1:]]
            raise SystemExit(subprocess.run(arguments, env=environment, check=False).returncode)
    load()
    if mutation:
        MUTATIONS[mutation]()
    rng = random.Random(seed)
    wrong = False
    with ExitStack() as stack:
        root = Path(stack.enter_context(TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)))
        names = [each.name for each in COMMANDS if not command or each.name in command]
        last = names[-1]
        prepare(root / "old", OLD, last)
        prepare(root / "new", NEW, last)
        print("| command | fault | times | what wasn't as it should be |\n|---|---|---|---|")
        for each in (each for each in COMMANDS if each.name in names):
            disturbed = Trials(each, root)
            for kind in faults:
                times, broken = disturb(disturbed, kind, trials, rng)
                what = "; ".join(f"{name} ({n})" for name, n in broken.items()) or "nothing"
                print(f"| {each.name} | {kind} | {times} of {disturbed.writes} | {what} |", flush=True)
                wrong = wrong or bool(broken)
    if wrong:
        raise SystemExit("Something wasn't as it should be")


if __name__ == "__main__":
    typer.run(main)
