"""Two branches on a real corpus, as a user compares them: the project's tokenizer rules against spaCy's tokenizer.

    python -m benchmarks.branches             # trains twice; a quarter of an hour

In a clone of this repository (what is committed), main has the wet lab protocols as its corpus and is recorded with
`dvc repro`; the branch empties the section `tokenizer` of project.yml and does the same. Then they are compared. Fetch
the corpus first, with `weasel assets --extra`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.measure import write_result

OUT = Path("benchmarks/out/branches")
ASSETS = "assets/wnut2020_wlp"
IDENTITY = ["-c", "user.name=labelwise", "-c", "user.email=labelwise@example.org"]


def run(*command: str, cwd: Path, output: int | None = None) -> str:
    """Run a command, with the commands of this environment on the path; return its output if that is a pipe."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    return subprocess.run(command, cwd=cwd, env=environment, check=True, stdout=output, text=True).stdout


def set_variables(project: Path, values: dict[str, object]) -> None:
    """Change variables of project.yml in place."""
    text = project.read_text(encoding="utf8")
    for name, value in values.items():
        text = re.sub(rf"(?m)^  {name}: \S+", f"  {name}: {value}", text)
    project.write_text(text, encoding="utf8")


def record(repository: Path, message: str) -> None:
    """Run what has changed, and commit the results."""
    run("dvc", "repro", "evaluate-cpu", cwd=repository)
    run("git", "add", "-A", cwd=repository)
    run("git", *IDENTITY, "commit", "-qm", message, cwd=repository)


def main(
    corpus: Annotated[Path, typer.Argument(help="Folder of brat documents")] = Path(ASSETS),
    steps: Annotated[int, typer.Option(help="Training steps")] = 500,
) -> None:
    """Record both branches, and write the comparison."""
    shutil.rmtree(OUT, ignore_errors=True)
    run("git", "clone", "-q", ".", str(OUT.resolve()), cwd=Path())
    shutil.copytree(corpus.resolve(), OUT / ASSETS)
    project = OUT / "project.yml"
    set_variables(project, {"brat_dir": f'"{ASSETS}"', "cpu_steps": steps, "test_ratio": 0.2})
    run("git", "checkout", "-qB", "main", cwd=OUT)
    record(OUT, "The project's tokenizer")
    run("git", "checkout", "-qb", "spacys-tokenizer", cwd=OUT)
    text = project.read_text(encoding="utf8")
    start, end = text.index("\ntokenizer:\n"), text.index("\ndirectories:")
    project.write_text(text[:start] + "\ntokenizer: {}\n" + text[end:], encoding="utf8")
    record(OUT, "spaCy's tokenizer")
    compare = [sys.executable, "-m", "scripts.compare", "main", "spacys-tokenizer", "--json"]
    found = json.loads(run(*compare, cwd=OUT, output=subprocess.PIPE))
    rows = []
    for name, row in {**found["labels"], "all (micro)": found["micro"], "mean (macro)": found["macro"]}.items():
        change = row["changes"]["spacys-tokenizer"]
        spread = "" if change["low"] is None else f"{change['low']:+.3f} to {change['high']:+.3f}"
        rows.append((name, *row["f"].values(), change["difference"], spread, change["p"], row["support"]))
    columns = {"F": "", "main": ".3f", "spacys-tokenizer": ".3f", "difference": "+.3f", "95%": "", "p": ".4f"}
    write_result("branches", {**columns, "support": ","}, rows)


if __name__ == "__main__":
    typer.run(main)
