"""Shares of a command's jobs, for those who have arrays of jobs rather than a cluster.

Share 3/50 does the third fiftieth of the jobs of the first phase that isn't finished, and ends. Shares see the same
files; they run side by side or one after the other, again if they were killed, and never beside a whole run, which
takes what they have done once all of it is there. Until then, a hidden folder beside the output has `plan.json`, what
shares must have in common, and for each phase and share a file of results, a line of JSON each.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from labelwise.common.errors import InputError
from labelwise.common.facts import own_facts
from labelwise.common.outputs import staged
from labelwise.common.own_files import locked, open_own, own_folder, own_name, read_own, remove
from labelwise.common.wording import counted

Result = TypeVar("Result")
NAMED = 10  # shares that a line names
ENCODER = msgspec.json.Encoder(enc_hook=str, order="deterministic")  # a path becomes text


class Share(NamedTuple):
    """A share of the jobs: which, from 1 on, and of how many."""

    number: int
    of: int

    def __str__(self) -> str:
        """Write it as it was given."""
        return f"share {self.number}/{self.of}"

    def part(self, jobs: int) -> range:
        """Return the jobs that are its own, which follow each other."""
        return range(jobs * (self.number - 1) // self.of, jobs * self.number // self.of)


class ShareEnded(Exception):
    """A share has done its jobs of a phase; the message says what is missing, and what comes next."""


class Shares:
    """The jobs of a command: a share's own, or those of a whole run, which takes what shares have done."""

    def __init__(self, folder: Path | None = None, share: Share | None = None, count: int = 0) -> None:
        """Take the folder for results, None if no share did anything, and how many shares there are."""
        self.folder, self.share, self.count = folder, share, count

    def results(
        self,
        phase: str,
        jobs: int,
        do: Callable[[range], Iterator[Result]],
        decode: Callable[[bytes], Result],
        *,
        last: bool = False,
    ) -> Iterator[Result]:
        """Return the results of a phase, in order.

        jobs (int): how many there are.
        do (Callable): does those with these numbers, and yields their results, in order.
        decode (Callable): reads a result again from JSON.
        last (bool): no phase follows.
        RAISES (ShareEnded): this is a share; it has done its jobs, unless all of the phase are done, and another
            follows.
        """
        did = self._do_own(self.share, phase, jobs, do) if self.share else 0
        missing = self._missing(phase, jobs)
        if self.share and (did or missing or last):
            raise ShareEnded(self._told(phase, jobs, did, missing, last=last))
        if self.folder is None or missing:
            return do(range(jobs))
        files = (self._file(phase, number) for number in range(1, self.count + 1))
        return (decode(line) for file in files for line in _lines(file))

    def _file(self, phase: str, number: int) -> Path:
        return (self.folder or Path()) / f"{phase}-{number}.jsonl"

    def _do_own(self, share: Share, phase: str, jobs: int, do: Callable[[range], Iterator[Any]]) -> int:
        """Do the jobs of this share that it hasn't done before, and count them."""
        part, file = share.part(jobs), self._file(phase, share.number)
        done = list(_lines(file))
        left = part[len(done) :]
        if left or not file.exists():
            with staged(file) as path:  # a line that was cut off is no result
                path.write_bytes(b"".join(done))
            with file.open("ab", buffering=0) as results:
                for result in do(left):
                    results.write(msgspec.json.encode(result) + b"\n")
        return len(left)

    def _missing(self, phase: str, jobs: int) -> dict[int, int]:
        """Count the jobs of a phase that aren't done, by share."""
        found = {
            number: len(Share(number, self.count).part(jobs)) - sum(1 for _ in _lines(self._file(phase, number)))
            for number in range(1, self.count + 1)
        }
        return {number: missing for number, missing in found.items() if missing}

    def _told(self, phase: str, jobs: int, did: int, missing: Mapping[int, int], *, last: bool) -> str:
        done = f"{phase}: {self.share} did {counted(did, 'job')}"
        if missing:
            names = ", ".join(map(str, [*missing][:NAMED])) + ", ..." * (len(missing) > NAMED)
            left = f"{sum(missing.values()):,} of {jobs:,} are missing"
            return f"{done}; {left}, of {'shares' if len(missing) > 1 else 'share'} {names}"
        follows = "run this without --share to finish" if last else "run the shares once more, for what comes next"
        return f"{done}; all {jobs:,} are done: {follows}"


def _lines(file: Path) -> Iterator[bytes]:
    """Yield the whole lines of a file, if it is there; a share that was killed may have begun another."""
    if file.exists():
        with os.fdopen(open_own(file, os.O_RDONLY), "rb") as lines:
            yield from (line for line in lines if line.endswith(b"\n"))


def parse_share(share: str) -> Share:
    """Read a share, such as "3/50".

    RAISES (InputError): it is something else.
    """
    number, _, count = share.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise InputError(f"--share {share}: give a number from 1 on, and how many shares there are, such as 3/50")
    return Share(int(number), int(count))


@contextmanager
def open_shares(out: Path, share: str, facts: Callable[[], Mapping[str, Any]]) -> Iterator[Shares]:
    """Open the shares of a command.

    out (Path): its output, which a whole run has locked.
    share (str): such as "3/50"; empty for a whole run.
    facts (Callable): finds what results depend on, besides the code; JSON can be made of it. It isn't asked where no
        share did anything.
    RAISES (InputError): shares were begun with other facts, or another number of them; this one is being done, or a
        whole run writes the output.
    """
    folder = own_name(out, "shares")
    if not share:
        plan = _read_plan(folder)
        same = plan and plan == _own_facts(facts) | {"shares": plan.get("shares")}
        yield Shares(folder, None, plan["shares"]) if plan and same else Shares()
        remove(folder)
        return
    one = parse_share(share)
    with locked(out, shared=True):
        own_folder(folder)
        with locked(folder / "plan.json", wait=True):
            plan = _read_plan(folder)
            own = _own_facts(facts) | {"shares": one.of}
            if not plan:
                plan = own
                with staged(folder / "plan.json") as path:
                    path.write_bytes(msgspec.json.encode(plan))
        for name, here in own.items():
            if plan.get(name) != here:
                raise InputError(
                    f"--share {share}: {folder} was begun with other {name} ({plan.get(name)}, not {here}); use the "
                    "same for all shares, or delete that folder, and begin again"
                )
        with locked(folder / f"share-{one.number}"):
            yield Shares(folder, one, one.of)


def _own_facts(facts: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """Find the facts of this process, and digest the others."""
    digests = {name: hashlib.sha256(ENCODER.encode(fact)).hexdigest()[:16] for name, fact in facts().items()}
    return own_facts()._asdict() | digests


def _read_plan(folder: Path) -> dict[str, Any] | None:
    """Read what shares have in common; None if there are none."""
    file = folder / "plan.json"
    return msgspec.json.decode(read_own(file), type=dict[str, Any]) if file.exists() else None
