"""Command lines: each parses, calls the package, prints, and exits."""

import os
import signal
import sys
from types import FrameType


def quit_quietly(number: int, frame: FrameType | None) -> None:
    """End this process at once, as a handler of signals: there is nothing to clean up, and nothing to say."""
    os._exit(128 + number)


# Colours are for terminals (https://no-color.org): spaCy's printer reads this when it is imported.
if sys.stdout is None or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
    os.environ["ANSI_COLORS_DISABLED"] = "1"

# While `python -m scripts.X` loads what the command needs, which takes a second or more; then `console.run` takes over.
if sys.argv[:1] == ["-m"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, quit_quietly)

import labelwise  # noqa: E402, F401  before numpy, which reads what it sets
