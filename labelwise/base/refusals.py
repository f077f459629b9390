"""Errors of the machine, such as a full disk: one line each, with a remedy."""

import errno
import os
import re
import sys
from types import TracebackType

SPACE = "free some space, there or where TMPDIR is"
MEMORY = "use fewer processes (workers in project.yml, --workers), or a machine with more memory"
REMEDIES = {
    errno.ENOSPC: SPACE,
    errno.EDQUOT: SPACE,
    errno.EIO: "check the disk",
    errno.EROFS: "write elsewhere, or mount it writable",
    errno.EACCES: "change its permissions, or use another path",
    errno.EPERM: "change its permissions, or use another path",
    errno.EMFILE: "raise the limit of open files: ulimit -n 4096",
    errno.ENFILE: "raise the limit of open files: ulimit -n 4096",
    errno.EFBIG: "raise the limit of a file's size: ulimit -f unlimited",
    errno.EAGAIN: MEMORY,
    errno.ENOMEM: MEMORY,
}
# Of errors without a number: numpy's, pyarrow's, PyTorch's, and the dynamic loader's.
MESSAGES = {
    r"(?i)out of memory|cannot allocate memory|can't allocate memory|failed to map segment": MEMORY,
    r"(?i)can't start new thread|resource temporarily unavailable": f"raise ulimit -u and ulimit -v; {MEMORY}",
}


def describe_refusal(error: BaseException) -> str:
    """Describe an error of the machine in a line, with a remedy; return "" for any other error."""
    message = " ".join(str(error).split())
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        number, files = error.errno or 0, ", ".join(map(str, filter(None, (error.filename, error.filename2))))
        what = f"{files}: {error.strerror}" if files else error.strerror or message
        return f"{what}; {REMEDIES[number]}" if number in REMEDIES else what
    if isinstance(error, MemoryError):
        return f"memory ran out{f' ({message})' if message else ''}; {MEMORY}"
    if isinstance(error.__context__, MemoryError):  # srsly calls it invalid YAML
        return describe_refusal(error.__context__)
    remedies = (remedy for pattern, remedy in MESSAGES.items() if re.search(pattern, message))
    return next((f"{message}; {remedy}" for remedy in remedies), "")


def open_streams() -> None:
    """Open closed standard streams, so no other file gets their numbers and their output."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, number)
            if null > 2:
                os.close(null)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf8"))


def install_hook() -> None:
    """Print errors of the machine, an interrupt, or a missing environment in one line; others with a traceback."""
    others = sys.excepthook
    outside = sys.prefix == sys.base_prefix  # of any virtual environment

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, KeyboardInterrupt):
            print("✘ Interrupted", file=sys.stderr)
            raise SystemExit(130)  # as in `user_errors`
        if isinstance(error, ModuleNotFoundError) and outside:
            print(f"✘ {error}; run `source .venv/bin/activate` first (`make run` sets .venv up)", file=sys.stderr)
        elif message := describe_refusal(error):
            print(f"✘ {message}", file=sys.stderr)
        else:
            others(kind, error, trace)

    sys.excepthook = hook
