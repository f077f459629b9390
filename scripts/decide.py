"""See labelwise/commands/decide.py."""

from labelwise.commands.console import run
from labelwise.commands.decide import decide_cli

if __name__ == "__main__":
    run(decide_cli)
