import fcntl
import os

import pytest

from labelwise.common.errors import InputError
from labelwise.common.outputs import locked, move_into, replace, staged, workspace
from tests.conftest import another_process


def test_a_file_appears_when_it_is_whole(tmp_path):
    target = tmp_path / "sub" / "file"
    with staged(target) as path:
        path.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    assert [p.name for p in target.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("folder", [True, False])
def test_on_failure_the_old_stays_and_nothing_is_left(tmp_path, folder):
    target = tmp_path / "x"
    if folder:
        target.mkdir()
    kept = target / "old" if folder else target
    kept.write_text("old")

    def write_half():
        with staged(target) as path:
            path.mkdir() if folder else path.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_half()
    assert kept.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    target = tmp_path / "x"
    target.mkdir()
    (target / "stale").write_text("")
    with staged(target) as path:
        path.mkdir()
        (path / "new").write_text("")
    assert [p.name for p in target.iterdir()] == ["new"]
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_what_a_killed_run_left_is_cleared(tmp_path):
    leftover = tmp_path / ".x.labelwise.tmp"
    leftover.mkdir()
    (leftover / "half").write_text("")
    with workspace(tmp_path / "x") as path:
        assert path == leftover
        assert not path.exists()
        path.mkdir()
    assert list(tmp_path.iterdir()) == []


def test_the_last_is_removed_first_and_moved_last(tmp_path, monkeypatch):
    source, target = tmp_path / "source", tmp_path / "target"
    for folder, content in ((source, "new"), (target, "old")):
        folder.mkdir()
        for name in ("a", "manifest", "z"):
            (folder / name).write_text(content)
    moved = []

    def record(one, other):
        moved.append(one.name)
        assert not (target / "manifest").exists()
        replace(one, other)

    monkeypatch.setattr("labelwise.common.outputs.replace", record)
    move_into(source, target, last="manifest")
    assert moved == ["a", "z", "manifest"]
    assert {p.name: p.read_text() for p in target.iterdir()} == {"a": "new", "manifest": "new", "z": "new"}


def test_what_another_process_is_writing_is_not_written(tmp_path):
    target = tmp_path / "x"
    (tmp_path / "link").symlink_to(tmp_path)
    with another_process(workspace(target)) as other:
        for path in (target, tmp_path / "link" / "x"):
            with (
                pytest.raises(InputError, match=rf"{tmp_path}: process {other} is writing x there; wait"),
                staged(path),
            ):
                pass
        with staged(tmp_path / "y") as path:
            path.write_text("")
    with staged(target) as path:
        path.write_text("")
    assert {p.name for p in tmp_path.iterdir()} == {"x", "y", "link"}


def test_a_lock_file_that_its_holder_deletes_is_not_taken(tmp_path, monkeypatch):
    """Else a third process would lock another file of that name."""
    file = tmp_path / ".x.labelwise.lock"
    opened = []
    lockf = fcntl.lockf

    def delete_first(lock, *given):
        opened.append(lock)
        if len(opened) == 1:
            file.unlink()
        lockf(lock, *given)

    monkeypatch.setattr(fcntl, "lockf", delete_first)
    with locked(tmp_path / "x"):
        assert file.read_text() == str(os.getpid())
        assert os.fstat(opened[-1].fileno()).st_ino == file.stat().st_ino
    assert len(opened) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [".x.tmp", ".x.old", ".x.lock"])
def test_what_others_have_beside_an_output_stays(tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "mine").write_text("")
    for _ in range(2):
        with staged(tmp_path / "x") as path:
            path.mkdir()
    assert (tmp_path / name / "mine").exists()
