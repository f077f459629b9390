"""See labelwise/commands/report.py."""

from labelwise.commands.console import run
from labelwise.commands.report import report_cli

if __name__ == "__main__":
    run(report_cli)
