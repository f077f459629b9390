"""See labelwise/commands/add_label.py."""

from labelwise.commands.add_label import add_label_cli
from labelwise.commands.console import run

if __name__ == "__main__":
    run(add_label_cli)
