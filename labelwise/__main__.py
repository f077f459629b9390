"""The console command `labelwise`: `labelwise merge` runs `scripts/merge.py`, installed as labelwise.scripts.

A command's module is loaded when it is called, and not before. Its name may be written with - or with _.
"""

import ast
import sys
from importlib import import_module
from pathlib import Path

from labelwise import __version__

PACKAGE = Path(__file__).resolve().parent
INSTALLED = (PACKAGE / "scripts").is_dir()  # in a clone they lie beside the package


def main() -> None:
    """Run the command that is named, print the version, or list all commands."""
    given = sys.argv[1] if len(sys.argv) > 1 else ""
    name = given.replace("-", "_")
    if name in commands():
        sys.argv = [f"labelwise {given}", *sys.argv[2:]]
        if not INSTALLED:
            sys.path.insert(0, str(PACKAGE.parent))  # this clone's, even if the environment is another's
        module = import_module(f"{'labelwise.' if INSTALLED else ''}scripts.{name}")
        import_module("labelwise.base.console").run(getattr(module, f"{name}_cli"))
    if given == "--version":
        sys.stdout.write(f"labelwise {__version__}\n")
        return
    lines = "".join(f"  {name.replace('_', '-'):16} {said}\n" for name, said in commands().items())
    sys.stdout.write(f"Usage: labelwise COMMAND [OPTIONS]; `labelwise COMMAND --help` lists the options\n\n{lines}")
    if given not in ("", "-h", "--help"):
        sys.exit(f"labelwise {given}: there is no such command")


def commands() -> dict[str, str]:
    """List the commands, as their modules are named, each with the first line of its docstring."""
    folder = (PACKAGE if INSTALLED else PACKAGE.parent) / "scripts"
    return {
        file.stem: (ast.get_docstring(ast.parse(file.read_text(encoding="utf8"))) or "").partition("\n")[0]
        for file in sorted(folder.glob("*.py"))
        if file.stem != "__init__"
    }


if __name__ == "__main__":
    main()
