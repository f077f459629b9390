"""See labelwise/commands/learning_curve.py."""

from labelwise.commands.console import run
from labelwise.commands.learning_curve import learning_curve_cli

if __name__ == "__main__":
    run(learning_curve_cli)
