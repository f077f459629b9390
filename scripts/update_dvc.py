"""See labelwise/commands/update_dvc.py."""

from labelwise.commands.console import run
from labelwise.commands.update_dvc import update_dvc_cli

if __name__ == "__main__":
    run(update_dvc_cli)
