"""See labelwise/commands/convert_brat.py."""

from labelwise.commands.console import run
from labelwise.commands.convert_brat import convert_brat_cli

if __name__ == "__main__":
    run(convert_brat_cli)
