"""See labelwise/commands/fetch_prodigy.py."""

from labelwise.commands.console import run
from labelwise.commands.fetch_prodigy import fetch_prodigy_cli

if __name__ == "__main__":
    run(fetch_prodigy_cli)
