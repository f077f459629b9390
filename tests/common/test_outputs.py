import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

import pytest

from labelwise.common import outputs
from labelwise.common.errors import InputError
from labelwise.common.outputs import Output, check_finished, check_replaceable, staged, staged_together, workspace
from labelwise.common.own_files import locked, own_folder, own_name, write_among_data
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
        assert path == leftover / "x"
        assert not any(leftover.iterdir())
        path.mkdir()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def victim(tmp_path) -> Path:
    """A file of the user's, which data that came from elsewhere know the place of."""
    path = tmp_path / "home" / "thesis.txt"
    path.parent.mkdir()
    path.write_text("years of work")
    return path


def write_twice(target: Path, folder: bool) -> None:
    with staged(target, folder=folder) as path:
        path.mkdir() if folder else path.write_text("new")
    with staged_together("command", target.with_name("y"), Output(target, "folder" if folder else "file")) as paths:
        paths[0].write_text("new")
        paths[1].mkdir() if folder else paths[1].write_text("new")


@pytest.mark.parametrize("kind", ["lock", "tmp", "journal"])
@pytest.mark.parametrize("folder", [True, False])
@pytest.mark.parametrize("hard", [True, False])
def test_no_link_that_came_with_data_is_written_through(tmp_path, victim, kind, folder, hard):
    work = tmp_path / "work"
    work.mkdir()
    victim.write_text("1912")  # a number, as a lock has: it isn't refused for its content
    for name in ("x", "y"):
        link = own_name(work / name, kind)
        link.hardlink_to(victim) if hard else link.symlink_to(victim)
    with suppress(InputError):
        write_twice(work / "x", folder)
    assert victim.read_text() == "1912"


def test_a_link_in_the_place_of_a_folder_is_deleted_not_emptied(tmp_path, victim):
    (tmp_path / ".x.labelwise.tmp").symlink_to(victim.parent)
    write_twice(tmp_path / "x", folder=True)
    assert victim.read_text() == "years of work"


@pytest.mark.parametrize(
    "make",
    [
        lambda path, victim: path.symlink_to(victim),
        lambda path, victim: path.hardlink_to(victim),
        lambda path, victim: os.mkfifo(path),
        lambda path, victim: path.mkdir(),
        lambda path, victim: path.write_text("no process"),
    ],
    ids=["link", "hard link", "FIFO", "folder", "file"],
)
def test_what_is_no_lock_is_an_error_with_its_name(tmp_path, victim, make):
    lock = tmp_path / ".x.labelwise.lock"
    make(lock, victim)
    with pytest.raises(InputError, match=rf"{lock}: labelwise didn't make this, and needs the name; delete it"):
        begin(tmp_path / "x", folder=False)
    assert os.path.lexists(lock)


@pytest.mark.parametrize("kind", ["file", "folder", "items"])
@pytest.mark.parametrize("inside", [True, False])
def test_a_journal_that_came_with_data_moves_and_deletes_nothing_of_the_users(tmp_path, victim, kind, inside):
    """With it, a link in the place of what a killed run would have left, or in it, to a folder of the user's."""
    work, home = tmp_path / "work", victim.parent
    for folder in (work / "x", home / "x", home / "old"):
        folder.mkdir(parents=True)
        (folder / "kept").write_text("")
    if kind == "file":
        (work / "x/kept").unlink()
        (work / "x").rmdir()
    before = {path: path.is_dir() or path.read_text() for path in home.rglob("*")}
    (work / ".x.labelwise.journal").write_text("command")
    temporary = work / ".x.labelwise.tmp"
    if inside:
        temporary.mkdir()
        (temporary / "x").symlink_to(home)
    else:
        temporary.symlink_to(home)
    with suppress(InputError, ZeroDivisionError), staged_together("command", Output(work / "x", kind)):
        raise ZeroDivisionError
    assert {path: path.is_dir() or path.read_text() for path in home.rglob("*")} == before


def test_a_link_in_the_place_of_a_folder_of_ours_is_an_error_with_its_name(tmp_path, victim):
    (tmp_path / ".x.labelwise.parts").symlink_to(victim.parent)
    with pytest.raises(InputError, match=r"\.x\.labelwise\.parts: labelwise didn't make this"):
        own_folder(tmp_path / ".x.labelwise.parts")
    own_folder(tmp_path / "a/.x.labelwise.parts")
    assert (tmp_path / "a/.x.labelwise.parts").is_dir()


def test_a_pipe_where_a_file_is_to_be_written_is_an_error(tmp_path):
    os.mkfifo(tmp_path / "x")
    with pytest.raises(InputError, match="x: this is neither a file nor a folder"):
        begin(tmp_path / "x", folder=False)


@pytest.mark.parametrize("hard", [True, False])
def test_a_file_among_data_is_written_whole_without_a_lock_and_through_no_link(tmp_path, victim, hard):
    data = tmp_path / "data"
    data.mkdir()
    for name in (".datasets.yml.labelwise.tmp", ".datasets.yml.labelwise.lock", "datasets.yml"):
        (data / name).hardlink_to(victim) if hard else (data / name).symlink_to(victim)
    with another_process(locked(data / "other")):
        write_among_data(data / "datasets.yml", b"found")
    assert victim.read_text() == "years of work"
    assert (data / "datasets.yml").read_text() == "found"
    assert not (data / ".datasets.yml.labelwise.tmp").exists()


def ended_at(number: int, work) -> bool:
    """Do work in a process that is killed before its Nth renaming or deletion; tell whether it came to that."""
    if (child := os.fork()) == 0:
        count = 0

        def count_calls(call):
            def counted(*given, **options):
                nonlocal count
                count += 1
                if count == number:
                    os._exit(9)
                return call(*given, **options)

            return counted

        for name in ("rename", "replace", "unlink"):
            setattr(Path, name, count_calls(getattr(Path, name)))
        outputs._exchange = count_calls(outputs._exchange)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def killed_everywhere(folder: Path, begin: Callable[[Path], None], work: Callable[[Path], None]) -> Iterator[Path]:
    """Folders in which work was killed, before its first renaming or deletion, its second, and so on to the last."""
    for number in count(1):
        root = folder / str(number)
        root.mkdir()
        begin(root)
        if not ended_at(number, lambda root=root: work(root)):
            return
        yield root


def state_of(root: Path) -> dict[str, str]:
    files = [path for path in root.rglob("*") if path.is_file() and "labelwise" not in str(path.relative_to(root))]
    return {path.relative_to(root).as_posix(): path.read_text() for path in files}


def write_all(root: Path, content: str) -> None:
    targets = [Output(root / "model", "folder"), Output(root / "whole", "items"), root / "scores"]
    with staged_together("merge", *targets) as (model, items, scores):
        for folder in (items / "train", items / "dev", model):
            folder.mkdir(parents=True)
            (folder / "part").write_text(content)
        (items / "manifest").write_text(content)
        scores.write_text(content)


def write_old(root: Path) -> None:
    write_all(root, "old")


def write_new(root: Path) -> None:
    write_all(root, "new")


def test_outputs_of_a_killed_command_are_old_or_new_or_refused_and_right_after_the_next_run(tmp_path):
    seen = set()
    for root in killed_everywhere(tmp_path, write_old, write_new):
        found = state_of(root)
        refused = [name for name in ("whole", "model", "scores") if refuses(root / name)]
        whole = len(set(found.values())) == 1 and len(found) == 5
        assert whole or refused == ["whole", "model", "scores"]
        seen.add("refused" if refused else found["scores"])
        if "scores" in refused:
            with pytest.raises(InputError, match=r"scores: merge is replacing this .*; wait, or run it again"):
                check_finished(root / "scores")
        write_all(root, "newest")
        assert set(state_of(root).values()) == {"newest"}
        assert not list(root.glob(".*"))
    assert seen == {"old", "new", "refused"}


def test_a_command_that_is_killed_again_while_it_finishes_its_moves_is_refused_too(tmp_path):
    """The first time, just when the first output has got its journal: from then on, the next run goes on."""
    begun = (own_name(root / "model", "journal") for root in killed_everywhere(tmp_path, write_old, write_new))
    killed = next(journal.parent for journal in begun if journal.exists())
    (tmp_path / "again").mkdir()
    for root in killed_everywhere(tmp_path / "again", partial(copytree, killed, dirs_exist_ok=True), write_new):
        refused = [name for name in ("whole", "model", "scores") if refuses(root / name)]
        assert len(set(state_of(root).values())) == 1 or refused == ["whole", "model", "scores"]


def refuses(path: Path) -> bool:
    with suppress(InputError):
        check_finished(path)
        return False
    return True


def test_a_run_that_fails_after_one_that_was_killed_leaves_one_of_both_states(tmp_path):
    """The next run may be stopped by a wrong argument: what it found is whole all the same."""
    for root in killed_everywhere(tmp_path, write_old, write_new):
        targets = [Output(root / "model", "folder"), Output(root / "whole", "items"), root / "scores"]
        check_replaceable(root / "model", ["part"], "pipeline")
        with suppress(ZeroDivisionError), staged_together("merge", *targets):
            raise ZeroDivisionError
        assert len(set(state_of(root).values())) == 1
        assert len(state_of(root)) == 5
        assert not list(root.glob(".*"))


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_folder_is_there_at_every_moment_or_put_back_by_the_next_start(tmp_path, monkeypatch, exchanges):
    if not exchanges:
        monkeypatch.setattr(outputs, "_exchange", lambda one, other: False)

    def write(root: Path, content: str) -> None:
        with staged(root / "x", folder=True) as path:
            path.mkdir()
            (path / "file").write_text(content)

    absent = 0
    for root in killed_everywhere(tmp_path, lambda root: write(root, "old"), lambda root: write(root, "new")):
        absent += not (root / "x" / "file").exists()
        check_replaceable(root / "x", ["file"], "folder")
        assert (root / "x" / "file").read_text() in ("old", "new")
        assert not list(root.glob(".*tmp*"))
    assert (absent == 0) == exchanges


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
    monkeypatch.setattr(outputs, "_exchange", fail)

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
        staged_together("command", tmp_path / "x", None, tmp_path / "link" / "x"),
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


def test_a_disk_that_is_full_while_a_folder_is_copied_is_named(tmp_path):
    """What `shutil.copytree` raises has a list of files, each with its error as text."""
    (tmp_path / "model").mkdir()
    for name in "ab":
        (tmp_path / "model" / name).touch()

    def fail(source, copy):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), copy)

    with (
        pytest.raises(InputError, match=f"^{tmp_path}: {os.strerror(errno.ENOSPC)}; free some, or choose another"),
        staged(tmp_path / "x", folder=True) as out,
    ):
        shutil.copytree(tmp_path / "model", out, copy_function=fail)
