"""See labelwise/commands/package.py."""

from labelwise.commands.console import run
from labelwise.commands.package import package_cli

if __name__ == "__main__":
    run(package_cli)
