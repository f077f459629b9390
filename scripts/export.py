"""See labelwise/commands/export.py."""

from labelwise.commands.console import run
from labelwise.commands.export import export_cli

if __name__ == "__main__":
    run(export_cli)
