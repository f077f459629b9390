"""See labelwise/commands/train.py."""

from labelwise.commands.console import run
from labelwise.commands.train import train_cli

if __name__ == "__main__":
    run(train_cli)
