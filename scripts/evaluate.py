"""See labelwise/commands/evaluate.py."""

from labelwise.commands.console import run
from labelwise.commands.evaluate import evaluate_cli

if __name__ == "__main__":
    run(evaluate_cli)
