"""See labelwise/commands/check_assets.py."""

from labelwise.commands.check_assets import check_assets_cli
from labelwise.commands.console import run

if __name__ == "__main__":
    run(check_assets_cli)
