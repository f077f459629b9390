"""See labelwise/commands/find_batch_size.py."""

from labelwise.commands.console import run
from labelwise.commands.find_batch_size import find_batch_size_cli

if __name__ == "__main__":
    run(find_batch_size_cli)
