import errno
import fcntl
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from labelwise.common.errors import InputError
from labelwise.common.outputs import locked, move_into, replace, staged, staged_files, workspace
from tests.conftest import another_process


@pytest.fixture
def other_disk(tmp_path):
    """A folder on another file system."""
    shm = Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no other file system")
    with TemporaryDirectory(dir=shm) as folder:
        yield Path(folder)


def begin(path: Path, *, folder: bool) -> None:
    with staged(path, folder=folder):
        raise AssertionError("too late")


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
        with staged(target, folder=folder) as path:
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
    with staged(target, folder=True) as path:
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
        with staged(tmp_path / "x", folder=True) as path:
            path.mkdir()
    assert (tmp_path / name / "mine").exists()


@pytest.mark.parametrize("folder", [True, False])
def test_a_folder_where_a_file_is_to_be_written_is_an_error_before_the_work(tmp_path, folder):
    target = tmp_path / "x"
    target.write_text("") if folder else target.mkdir()
    kinds = "a file, but a folder" if folder else "a folder, but a file"
    with pytest.raises(InputError, match=f"x: this is {kinds} is to be written there; choose another name"):
        begin(target, folder=folder)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_folder_on_another_disk_is_written_where_its_link_leads(tmp_path, other_disk):
    (other_disk / "model").mkdir()
    (other_disk / "model" / "old").write_text("")
    (tmp_path / "link").symlink_to(other_disk / "model")
    with staged(tmp_path / "link", folder=True) as path:
        path.mkdir()
        (path / "new").write_text("")
    assert (tmp_path / "link").is_symlink()
    assert [path.name for path in (other_disk / "model").iterdir()] == ["new"]
    assert [path.name for path in other_disk.iterdir()] == ["model"]


def test_a_link_to_a_file_is_replaced_as_it_may_lead_into_a_cache(tmp_path, other_disk):
    (other_disk / "cached").write_text("old")
    (tmp_path / "link").symlink_to(other_disk / "cached")
    with staged(tmp_path / "link") as path:
        path.write_text("new")
    assert (tmp_path / "link").read_text() == "new"
    assert (other_disk / "cached").read_text() == "old"


def test_a_link_to_nothing_is_an_error_before_the_work(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for folder in (True, False):
        with pytest.raises(InputError, match="link: this is a link to nothing; delete it, or make what it leads to"):
            begin(tmp_path / "link", folder=folder)


def test_where_a_file_system_is_mounted_is_an_error_before_the_work():
    with pytest.raises(InputError, match=r"/dev/shm: a file system is mounted there, so it can't be replaced"):
        begin(Path("/dev/shm"), folder=True)


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EBUSY])
def test_what_the_system_cannot_move_is_named(tmp_path, monkeypatch, code):
    """Such as a folder of a lower layer of an overlay."""
    (tmp_path / "x").mkdir()

    def fail(*paths):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "rename", fail)

    def write():
        with staged(tmp_path / "x", folder=True) as path:
            path.mkdir()

    with pytest.raises(InputError, match=rf"x: it can't be replaced: {os.strerror(code)}; move it elsewhere"):
        write()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_two_outputs_at_one_place_are_an_error_before_the_work(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    with (
        pytest.raises(InputError, match="x: two outputs would be written there; choose another name"),
        staged_files(tmp_path / "x", None, tmp_path / "link" / "x"),
    ):
        pass


def test_a_disk_that_fails_is_named(tmp_path):
    def write():
        with staged(tmp_path / "x"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(InputError, match=f"{tmp_path}: Input/output error, when something was .*; check the disks"):
        write()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named(tmp_path, code):
    def write():
        with staged(tmp_path / "x"):
            raise OSError(code, os.strerror(code))

    with pytest.raises(InputError, match=f"{tmp_path}: {os.strerror(code)}; free some, or choose another folder"):
        write()
