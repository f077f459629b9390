"""Which versions of Python labelwise can be installed and run with, as a table.

    python -m benchmarks.install python3.11 python3.12 ~/.pyenv/versions/3.13.0/bin/python
    python -m benchmarks.install --newest python3.13     # the newest that pyproject.toml allows, not the pinned

For each Python, in a clone of this repository (what is committed) and an environment of its own: the packages of
requirements/cpu.txt are installed, only as wheels where there are any; the tests of TESTS are passed, but for the slow
ones; and the demo goes the whole way, with few texts. It is all deleted in the end, but for `--environments FOLDER`.
"""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

TESTS = ["tests/common", "tests/sources", "tests/merge", "tests/corpus", "tests/evaluate", "tests/report"]
TOOLS = ["pytest", "hypothesis", "orjson", "scipy"]
SOURCES = "antlr4-python3-runtime"  # pure Python, of which there is no wheel
DEMO = {"demo_docs": 60, "demo_labels": 4, "docs_per_partition": 16, "cpu_steps": 60}


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a command without what ties it to this environment, and give what it prints.

    RAISES (subprocess.CalledProcessError): it failed; its output is shown.
    """
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    path = os.pathsep.join([str(Path(command[0]).absolute().parent), env["PATH"]])
    done = subprocess.run(command, cwd=cwd, env={**env, "PATH": path}, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout[-3000:], done.stderr[-3000:], flush=True)
    done.check_returncode()
    return done.stdout


def make_environment(python: str, folder: Path, newest: bool) -> Path:
    """Give the Python of an environment with the packages, which is made if it isn't there."""
    version = run(python, "-c", "import platform; print(platform.python_version())").strip()
    environment = folder / f"{version}-{'newest' if newest else 'pinned'}"
    own = environment / "bin" / "python"
    if not (environment / ".ready").exists():
        run(python, "-m", "venv", environment)
        packages = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf8"))["project"]["dependencies"]
        wheels = ["--only-binary=:all:", f"--no-binary={SOURCES}"]
        pinned = ["-r", "requirements/cpu.txt"]
        run(own, "-m", "pip", "install", "-q", *wheels, *(packages if newest else pinned), *TOOLS)
        (environment / ".ready").touch()
    return own


def try_python(own: Path, clone: Path) -> list[str]:
    """Pass the tests, and run the demo; give the tests' summary, and F."""
    run("git", "clone", "-q", ".", clone)
    tests = run(own, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not slow", *TESTS, cwd=clone)
    demo = [f"--vars.{name}={value}" for name, value in DEMO.items()]
    run(own.with_name("weasel"), "run", "all", ".", *demo, cwd=clone)
    metrics = json.loads((clone / "metrics" / "cpu.json").read_text(encoding="utf8"))
    return [*re.findall(r"(\d+ passed.*?) in ", tests)[-1:], f"{metrics['all_gold']['f']:.3f}"]


def main(
    pythons: Annotated[list[str], typer.Argument(help="Commands or paths of Python interpreters")],
    newest: Annotated[bool, typer.Option("--newest", help="The newest packages that pyproject.toml allows")] = False,
    environments: Annotated[Path | None, typer.Option(help="Folder in which the environments are kept")] = None,
) -> None:
    """Show which versions of Python labelwise can be installed and run with, as a table."""
    print("| Python, versions | packages | spaCy | numpy | tests | F of the demo |\n|---|---|---|---|---|---|")
    for python in pythons:
        with TemporaryDirectory(prefix="labelwise-install-") as folder:
            own = make_environment(python, (environments or Path(folder)).absolute(), newest)
            listed = run(own, "-m", "pip", "list", "--format=freeze").splitlines()
            versions = dict(line.split("==") for line in listed)
            row = [own.parents[1].name, str(len(versions)), versions["spacy"], versions["numpy"]]
            print("| " + " | ".join([*row, *try_python(own, Path(folder) / "clone")]) + " |", flush=True)


if __name__ == "__main__":
    typer.run(main)
