"""See labelwise/commands/db_out.py."""

from labelwise.commands.console import run
from labelwise.commands.db_out import db_out_cli

if __name__ == "__main__":
    run(db_out_cli)
