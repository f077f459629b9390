"""See labelwise/commands/merge.py."""

from labelwise.commands.console import run
from labelwise.commands.merge import merge_cli

if __name__ == "__main__":
    run(merge_cli)
