"""See labelwise/commands/make_demo.py."""

from labelwise.commands.console import run
from labelwise.commands.make_demo import make_demo_cli

if __name__ == "__main__":
    run(make_demo_cli)
