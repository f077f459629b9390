"""See labelwise/commands/upgrade.py."""

from labelwise.commands.console import run
from labelwise.commands.upgrade import upgrade_cli

if __name__ == "__main__":
    run(upgrade_cli)
