"""Commands are killed before a write: no partial output is taken, and the next run makes all anew.

A write is the opening of a file to write, a renaming, a deletion, or the making of a folder.
"""

import random

import pytest

from labelwise.errors import InputError
from tests.faults.commands import COMMANDS, NEW, Projects, leftovers, outputs, start

LONG = {"merge": 24, "export": 8, "train": 8, "evaluate": 8, "package": 4, "report": 8}


@pytest.fixture(scope="module")
def projects(tmp_path_factory) -> Projects:
    return Projects(tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize(
    ("name", "trials"),
    [
        ("make_demo", 3),
        ("convert_brat", 8),
        *(pytest.param(name, trials, marks=pytest.mark.long) for name, trials in LONG.items()),
    ],
)
def test_a_command_that_is_killed_leaves_nothing_partial_and_can_be_run_again(projects, name, trials):
    command = COMMANDS[name]
    projects.run_until(command)
    projects.place(command)
    old, new = outputs(command, projects.work), outputs(command, projects.states[NEW])
    writes = start(command, projects.work, NEW)
    assert old != new == outputs(command, projects.work)
    for number in random.Random(0).sample(range(1, writes + 1), min(trials, writes)):
        projects.place(command)
        assert start(command, projects.work, NEW, number) is None
        now = outputs(command, projects.work)
        if now not in (old, new, {}):
            assert command.readers, f"write {number}: it is neither old nor new"
            for read in command.readers.values():
                with pytest.raises(InputError):
                    read(projects.work)
        start(command, projects.work, NEW)
        assert outputs(command, projects.work) == new, f"after write {number}"
        assert leftovers(projects.work) == [], f"after write {number}"
