"""Which versions of Python labelwise can be installed and run with, as a table.

    python -m benchmarks.install python3.11 python3.12 ~/.pyenv/versions/3.13.0/bin/python
    python -m benchmarks.install --newest python3.13     # the newest that pyproject.toml allows, not the pinned

For each Python, in a clone of this repository (what is committed) and an environment of its own: the packages of
requirements/cpu.txt are installed, only as wheels where there are any; the tests of TESTS are passed, but for the slow
ones; and the demo goes the whole way, with few texts. All of it is deleted in the end.
"""

import os
import re
import subprocess
import time
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


def try_python(python: str, folder: Path, newest: bool) -> list[str]:
    """Give a row of the table: Python's version, packages, seconds of installing, tests, and the demo's F."""
    run("git", "clone", "-q", ".", folder / "clone")
    run(python, "-m", "venv", folder / "venv")
    own = folder / "venv" / "bin" / "python"
    packages = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf8"))["project"]["dependencies"]
    pinned = ["-r", "requirements/cpu.txt"]
    start = time.perf_counter()
    wheels = ["--only-binary=:all:", f"--no-binary={SOURCES}"]
    run(own, "-m", "pip", "install", "-q", *wheels, *(packages if newest else pinned), *TOOLS)
    seconds = time.perf_counter() - start
    tests = run(own, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not slow", *TESTS, cwd=folder / "clone")
    demo = [f"--vars.{name}={value}" for name, value in DEMO.items()]
    run(own.with_name("weasel"), "run", "all", ".", *demo, cwd=folder / "clone")
    metrics = (folder / "clone" / "metrics" / "cpu.json").read_text(encoding="utf8")
    version = run(own, "-c", "import platform; print(platform.python_version())").strip()
    count = len(run(own, "-m", "pip", "list", "--format=freeze").splitlines())
    f = re.findall(r'"f": ?([0-9.]+)', metrics)
    passed = re.findall(r"(\d+ passed.*?) in ", tests)
    return [version, "newest" if newest else "pinned", str(count), f"{seconds:.0f}", *passed[-1:], f"{float(f[0]):.3f}"]


def main(
    pythons: Annotated[list[str], typer.Argument(help="Commands or paths of Python interpreters")],
    newest: Annotated[bool, typer.Option("--newest", help="The newest packages that pyproject.toml allows")] = False,
) -> None:
    """Show which versions of Python labelwise can be installed and run with, as a table."""
    print("| Python | versions | packages | seconds to install | tests | F of the demo |\n|---|---|---|---|---|---|")
    for python in pythons:
        with TemporaryDirectory(prefix="labelwise-install-") as folder:
            row = try_python(str(Path(python).expanduser()) if "/" in python else python, Path(folder), newest)
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    typer.run(main)
