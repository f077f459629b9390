"""Commands are killed before a write, and have it fail: no partial output is taken, and the next run makes all anew.

A write is the opening of a file to write, a renaming, a deletion, or the making of a folder. `FAULTS=1000` tries each.
"""

import os
import random

import pytest

from labelwise.errors import InputError
from tests.faults.commands import COMMANDS, ERRORS, KILL, NEW, Projects, leftovers, outputs, start


@pytest.fixture(scope="module")
def projects(tmp_path_factory) -> Projects:
    return Projects(tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize("fault", ["killed", "failing"])
@pytest.mark.parametrize(
    ("name", "trials"),
    [
        ("make_demo", 3),
        ("convert_brat", 8),
        *(
            pytest.param(name, trials, marks=pytest.mark.long)
            for name, trials in {
                **{"merge": 24, "export": 8, "train": 8, "evaluate": 8, "package": 4, "report": 8}
            }.items()
        ),
    ],
)
def test_a_command_that_is_disturbed_leaves_nothing_partial_and_can_be_run_again(projects, name, trials, fault):
    command = COMMANDS[name]
    projects.run_until(command)
    projects.place(command)
    old, new = outputs(command, projects.work), outputs(command, projects.states[NEW])
    writes = start(command, projects.work, NEW).writes
    assert old != new == outputs(command, projects.work)
    tried = min(int(os.environ.get("FAULTS", trials)), writes)
    for number in sorted(random.Random(0).sample(range(1, writes + 1), tried)):
        projects.place(command)
        error = KILL if fault == "killed" else ERRORS[number % 2]
        ended = start(command, projects.work, NEW, number, error)
        now = outputs(command, projects.work)
        assert ended.status or (error and now == new), f"write {number}: all is said to be well"
        if now not in (old, new, {}):
            assert command.readers, f"write {number}: it is neither old nor new"
            for read in command.readers.values():
                with pytest.raises(InputError):
                    read(projects.work)
        if ended.status and error:
            assert "Traceback" not in ended.printed, f"write {number}: {ended.printed}"
            assert any(
                (projects.work / output).name in ended.printed or (projects.work / output).parent.name in ended.printed
                for output in command.outputs
            ), f"write {number}: it names no folder: {ended.printed}"
        again = start(command, projects.work, NEW)
        assert again.status == 0, f"after write {number}: {again.printed}"
        assert outputs(command, projects.work) == new, f"after write {number}"
        assert leftovers(projects.work) == [], f"after write {number}"
    assert tried >= min(trials, 2)
