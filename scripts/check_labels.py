"""See labelwise/commands/check_labels.py."""

from labelwise.commands.check_labels import check_labels_cli
from labelwise.commands.console import run

if __name__ == "__main__":
    run(check_labels_cli)
