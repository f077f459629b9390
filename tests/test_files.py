import errno
import os
import re
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from labelwise.base import files
from labelwise.base.errors import InputError
from labelwise.base.files import atomic, locked
from tests.conftest import ROOT, another_process, run_command


@pytest.fixture
def other_disk(tmp_path):
    shm = Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no other file system")
    with TemporaryDirectory(dir=shm) as folder:
        yield Path(folder)


@pytest.mark.guarantee("old-or-new")
@pytest.mark.parametrize("folder", [True, False])
def test_on_failure_the_old_stays_and_nothing_is_left(tmp_path, folder):
    target = tmp_path / "x"
    if folder:
        target.mkdir()
    old = target / "old" if folder else target
    old.write_text("old")

    def write_half():
        with atomic(target, folders=[target] if folder else []) as [path]:
            path.mkdir() if folder else path.write_text("half")
            raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        write_half()
    assert old.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def ended_at(number: int, work: Callable[[], None]) -> bool:
    """Do work in a process that is killed before its Nth change of a folder; return whether it was killed."""
    if (child := os.fork()) == 0:
        changes = count(1)

        def kill(event: str, given: tuple) -> None:
            if event in ("os.rename", "os.remove", "os.rmdir") and next(changes) == number:
                os._exit(9)

        sys.addaudithook(kill)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def state_of(root: Path) -> dict[str, str]:
    files = [path for path in root.rglob("*") if path.is_file() and "labelwise" not in str(path.relative_to(root))]
    return {path.relative_to(root).as_posix(): path.read_text() for path in files}


def write_corpus(root: Path, content: str) -> None:
    others = [root / "corpus/train", root / "corpus/dev", root / "scores", None]
    with atomic(root / "corpus/manifest", *others, folders=others[:2]) as (manifest, train, dev, scores, none):
        assert none is None
        assert manifest.parent == train.parent, "what is in one folder is built in one folder"
        for folder in (train, dev):
            folder.mkdir()
            (folder / "part").write_text(content)
        scores.write_text(content)
        manifest.write_text(content)


def write_model(root: Path, content: str) -> None:
    with atomic(root / "model", root / "curve", folders=[root / "model"]) as (model, curve):
        model.mkdir()
        (model / "part").write_text(content)
        if content != "half":
            curve.write_text(content)


@pytest.mark.guarantee("old-or-new")
@pytest.mark.parametrize(("write", "first", "files"), [(write_corpus, "corpus/manifest", 4), (write_model, "model", 2)])
def test_outputs_of_a_killed_command_are_old_or_new_or_without_the_first(tmp_path, write, first, files):
    seen = set()
    for number in count(1):
        root = tmp_path / str(number)
        root.mkdir()
        write(root, "old")
        if not ended_at(number, partial(write, root, "new")):
            break
        state = state_of(root)
        if (root / first).exists():
            assert len(state) == files
            assert len(set(state.values())) == 1, "old and new are mixed"
            seen |= set(state.values())
        else:
            seen.add("refused")
        write(root, "newest")
        assert set(state_of(root).values()) == {"newest"}
        assert not list(root.glob("**/.*"))
    assert seen == {"old", "new", "refused"}


def test_an_output_that_was_not_built_is_deleted(tmp_path):
    write_model(tmp_path, "old")
    write_model(tmp_path, "half")
    assert state_of(tmp_path) == {"model/part": "half"}


def test_outputs_of_one_name_in_two_folders_do_not_disturb_each_other(tmp_path):
    outputs = [(tmp_path / name / "model-best", tmp_path / "plots" / f"{name}.tsv") for name in ("cpu", "gpu")]
    with atomic(*outputs[0]) as (model, curve):
        with atomic(*outputs[1]) as inner:
            for path in inner:
                path.write_text("gpu")
        for path in (model, curve):
            path.write_text("cpu")
    assert [[path.read_text() for path in both] for both in outputs] == [["cpu"] * 2, ["gpu"] * 2]


def test_what_another_process_is_writing_is_not_written(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    message = f"{tmp_path / 'x'}: another process is writing this; wait"
    with another_process(locked(tmp_path / "x")):
        for path in (tmp_path / "x", tmp_path / "link" / "x"):
            with pytest.raises(InputError, match=message), atomic(path):
                raise AssertionError("too late")
        with atomic(tmp_path / "y") as [path]:
            path.write_text("")
    with atomic(tmp_path / "x") as [path]:
        path.write_text("")
    assert {p.name for p in tmp_path.iterdir()} == {"x", "y", "link"}


@pytest.mark.guarantee("own-files")
@pytest.mark.parametrize("name", [".x.tmp", ".x.old", ".x.lock"])
def test_what_others_have_beside_an_output_stays(tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "mine").write_text("")
    for _ in range(2):
        with atomic(tmp_path / "x", folders=[tmp_path / "x"]) as [path]:
            path.mkdir()
    assert (tmp_path / name / "mine").exists()


@pytest.mark.parametrize("folder", [True, False])
def test_a_link_to_a_folder_is_followed_and_one_to_a_file_replaced(tmp_path, other_disk, folder):
    """A folder may be on another disk; a file may be in DVC's cache."""
    there, link = other_disk / "x", tmp_path / "link"
    there.mkdir() if folder else there.write_text("old")
    link.symlink_to(there)
    with atomic(link, folders=[link] if folder else []) as [path]:
        if folder:
            path.mkdir()
        (path / "new" if folder else path).write_text("new")
    assert [path.name for path in other_disk.iterdir()] == ["x"]
    if folder:
        assert link.is_symlink()
        assert (there / "new").read_text() == "new"
    else:
        assert (link.read_text(), there.read_text()) == ("new", "old")


@pytest.mark.guarantee("full-disk")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_or_broken_disk_is_named(tmp_path, code):
    def write():
        with atomic(tmp_path / "x"):
            raise OSError(code, os.strerror(code))

    with pytest.raises(InputError, match=f"^{tmp_path}: {os.strerror(code)}; (free some space|check the disk)"):
        write()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_exceeds_the_limit_of_its_size_is_named_and_the_remedy(tmp_path):
    """As `ulimit -f` sets it."""
    demo = f"ulimit -f 1; {sys.executable} -m scripts.make_demo {tmp_path / 'demo'} --format prodigy --docs 40"
    command = ["bash", "-c", demo]
    printed = " ".join(run_command(command, ROOT, os.environ, status=1).stdout.split())
    named = r"/demo/datasets\.yml: File too large; raise the limit that `ulimit -f` shows, or lift it: ulimit -f"
    assert re.search(re.escape(str(tmp_path)) + named, printed), printed
    assert not (tmp_path / "demo").exists()


def test_a_digest_of_code_is_of_the_folders_that_are_named_and_of_base(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PACKAGE", tmp_path / "labelwise")

    def digest_after(edited: str) -> str:
        (tmp_path / "labelwise" / edited).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "labelwise" / edited).write_text(f"# {edited}\n")
        return files.digest_code(["merge"], ["spacy 3.8"])

    before = digest_after("corpus/manifest.py")
    assert digest_after("report/charts.py") == digest_after("annotations.py") == before
    after = [digest_after(edited) for edited in ("base/errors.py", "merge/rules/answers.py", "merge/new.py")]
    assert len({before, *after, files.digest_code(["merge"], ["spacy 3.9"])}) == 5


def test_outputs_of_a_folder_are_refused_where_a_file_is(tmp_path):
    (tmp_path / "corpus").write_text("kept")
    refused = pytest.raises(InputError, match="corpus: this is a file, but a folder is to be written there; choose")
    with refused, atomic(tmp_path / "corpus" / "manifest.json", tmp_path / "corpus" / "texts"):
        pass
    assert (tmp_path / "corpus").read_text() == "kept"
