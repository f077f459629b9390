"""See labelwise/commands/compare.py."""

from labelwise.commands.compare import compare_cli
from labelwise.commands.console import run

if __name__ == "__main__":
    run(compare_cli)
