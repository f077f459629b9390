"""The console command `labelwise`: `labelwise merge --help`. The commands are the modules of this folder.

A command's module is loaded when it is called, and not before. Its name may be written with - or with _.
"""

import ast
import sys
from importlib import import_module
from pathlib import Path

from labelwise import __version__
from labelwise.common.environment import be_interruptible, prepare

FOLDER = Path(__file__).parent
NOT_COMMANDS = {"__init__", "console", "declare", "main"}


def main() -> None:
    """Run the command that is named, print the version, or list all commands."""
    be_interruptible()
    prepare()
    name = sys.argv[1].replace("-", "_") if len(sys.argv) > 1 else ""
    if name in command_names():
        sys.argv = [f"labelwise {sys.argv[1]}", *sys.argv[2:]]
        module = import_module(f"labelwise.commands.{name}")
        import_module("labelwise.commands.console").run(getattr(module, f"{name}_cli"))
    if name == "__version":
        sys.stdout.write(f"labelwise {__version__}\n")
        return
    wanted = name in ("", "__help")
    sys.stdout.write(f"Usage: labelwise COMMAND [OPTIONS]; `labelwise COMMAND --help` lists the options\n\n{listed()}")
    if not wanted:
        sys.exit(f"labelwise {sys.argv[1]}: there is no such command")


def command_names() -> list[str]:
    """List the commands, as their modules are named."""
    return sorted(file.stem for file in FOLDER.glob("*.py") if file.stem not in NOT_COMMANDS)


def listed() -> str:
    """Write a line for each command, without loading it."""
    lines = ""
    for name in command_names():
        document = ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf8"))) or ""
        lines += f"  {name.replace('_', '-'):16} {document.splitlines()[0]}\n"
    return lines
