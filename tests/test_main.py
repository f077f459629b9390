"""The console command `labelwise`: its commands, its version, and its exit status."""

import sys

import pytest

from labelwise import __main__, __version__
from tests.conftest import ROOT


@pytest.fixture
def labelwise(monkeypatch, capsys):
    """Call the command in this process; returns its status and what it prints."""

    def call(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["labelwise", *arguments])
        try:
            __main__.main()
        except SystemExit as ended:
            printed = capsys.readouterr().out
            return (ended.code if isinstance(ended.code, int) else 1), f"{printed}{ended.code}"
        return 0, capsys.readouterr().out

    # It is called as it is in a process of its own: the rest of the session keeps its stream.
    monkeypatch.setattr("sys.stdout.reconfigure", lambda **options: None, raising=False)
    return call


@pytest.mark.parametrize(("name", "help"), [("make-demo", "--help"), ("make_demo", "-h")])
def test_a_command_is_called_by_either_name(labelwise, name, help):
    status, printed = labelwise(name, help)
    assert status == 0
    assert f"labelwise {name}" in printed
    assert "--labels" in printed


@pytest.mark.parametrize(("arguments", "status"), [(["merge"], 2), (["merge", "nothing.yml", "corpus"], 1)])
def test_a_wrong_call_and_a_wrong_input_have_statuses_of_their_own(labelwise, arguments, status):
    assert labelwise(*arguments)[0] == status


def test_all_commands_are_listed_with_a_sentence_each_and_the_version_is_printed(labelwise):
    status, printed = labelwise("--help")
    assert (status, printed) == labelwise("-h") == labelwise()
    assert status == 0
    lines = [line for line in printed.splitlines() if line.startswith("  ")]
    assert len(lines) == len([*(ROOT / "scripts").glob("[a-z]*.py")])
    assert "  make-demo        Write a demo corpus, to try everything without your own data." in lines
    status, printed = labelwise("marge")
    assert status == 1
    assert printed.endswith("labelwise marge: there is no such command")
    assert "  merge " in printed
    assert labelwise("--version") == (0, f"labelwise {__version__}\n")
