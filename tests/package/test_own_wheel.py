import os
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

import labelwise
from tests.clone import IDENTITY, tracked
from tests.package.building import build, copy_clone, run_build

SECRET = b"AKIA2E0A8F3B244C9986"
PLANTED = (
    ".dvc/config",
    ".dvc/config.local",
    "project.yml",
    "assets/brat/mine/patient.txt",
    "metrics/secret.json",
    "tests/test_secret.py",
    "labelwise/notes.txt",
    "labelwise/project/.dvc/config",
    "spacy_per_label/notes.txt",
    # what an earlier build left
    "build/lib/labelwise/project/.dvc/config",
    "build/lib/labelwise/deleted.py",
)


def contents(file: Path) -> dict[str, bytes]:
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
    else:
        with tarfile.open(file) as archive:
            members = [(member, archive.extractfile(member)) for member in archive.getmembers()]
            files = {member.name.partition("/")[2]: opened.read() for member, opened in members if opened}
    return {name: content for name, content in files.items() if ".dist-info/" not in name and ".egg-info/" not in name}


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("clone")
    copy_clone(root)
    for name in PLANTED:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        with (root / name).open("ab") as file:
            file.write(b"\n# " + SECRET)
    for command in ("init -q", "add -A", f"commit -qm {SECRET.decode()}"):
        subprocess.run(["git", *command.split()], cwd=root, env={**os.environ, **IDENTITY}, check=True)
    (root / "labelwise.egg-info").mkdir()
    (root / "labelwise.egg-info/SOURCES.txt").write_text("\n".join(PLANTED))  # an sdist of an earlier version had them
    return root


@pytest.mark.parametrize("package", ["labelwise", "spacy_per_label"])
def test_a_distribution_has_its_code_alone_wherever_it_is_built(package, clone, tmp_path):
    source = clone if package == "labelwise" else clone / package
    sdist = run_build(source, tmp_path / "sdist", "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (unpacked,) = (tmp_path / "source").iterdir()
    code = {name for name in tracked() if name.startswith(f"{package}/")}
    for wheel in (run_build(source, tmp_path / "one"), run_build(unpacked, tmp_path / "two")):
        assert {*contents(wheel)} == code
        assert wheel.name.startswith(f"{package}-{labelwise.__version__}")
    about = {"PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}
    expected = (
        code | about | {"LICENSE", "MANIFEST.in", "setup.py"}
        if package == "labelwise"
        else {Path(name).name for name in code}
    )
    assert {*contents(sdist)} == expected | about
    for file in (sdist, *tmp_path.glob("*/*.whl")):
        assert SECRET not in b"".join(contents(file).values())


def test_a_wheel_between_releases_names_its_commit(tmp_path):
    clone, environment = tmp_path / "clone", {**os.environ, **IDENTITY}
    wheel = build(clone, tmp_path / "wheels")
    assert wheel.name == f"labelwise-{labelwise.__version__}-py3-none-any.whl"  # without git, without a commit
    code = contents(wheel)
    for command in ("init -q", "add -A", "commit -qm one"):
        subprocess.run(["git", *command.split()], cwd=clone, env=environment, check=True)
    commit = subprocess.check_output(["git", "rev-parse", "--short=8", "HEAD"], cwd=clone, text=True).strip()
    for folder, edited in (("clean", ""), ("dirty", "# edited")):
        with (clone / "Makefile").open("a") as file:
            file.write(edited)
        wheel = run_build(clone, tmp_path / folder)
        local = f"+g{commit}{'.dirty' * bool(edited)}" if ".dev" in labelwise.__version__ else ""
        assert wheel.name == f"labelwise-{labelwise.__version__}{local}-py3-none-any.whl"
        assert contents(wheel) == code
