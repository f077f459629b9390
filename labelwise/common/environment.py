"""How the process of a command differs from others: set before anything else is loaded, which numpy and spaCy read."""

import os
import signal
import sys
from types import FrameType

from labelwise.common.portable import choose_kernels


def prepare() -> None:
    """Prepare this process, and those that it starts, for a command; numpy isn't loaded yet."""
    # Stages of a clone depend on folders of its code. Weasel's checksum of a folder covers `__pycache__`: if a command
    # wrote bytecode there, each stage that shares the folder would run again.
    sys.dont_write_bytecode = True
    choose_kernels(sys.argv[1:])
    # Products of matrices by one thread (numpy reads this when it is loaded): their rounding, and so a trained
    # pipeline, would depend on the number of threads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Hugging Face's packages tell what they are used for, unless they are told not to.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    # Colours are for terminals (https://no-color.org): spaCy's printer reads this when it is imported.
    if sys.stdout is None or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        os.environ["ANSI_COLORS_DISABLED"] = "1"


def quit_quietly(number: int, frame: FrameType | None) -> None:
    """End this process at once, as a handler of signals: there is nothing to clean up, and nothing to say."""
    os._exit(128 + number)


def be_interruptible() -> None:
    """Let Ctrl-C end this process quietly while a command is loaded, which takes a second; then `console.run` does."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, quit_quietly)
