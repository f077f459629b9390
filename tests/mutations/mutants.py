"""Mutants by machine: what the tests of a folder's code don't see.

    make mutants FOLDER=labelwise/report

A mutant drops a keyword argument, drops a statement, or moves the edge of a comparison. A sample of a folder's is made,
from a seed, each in a copy of the repository. Each runs against the files of tests that run its line, the fastest
first, until one fails: it is killed. Those that survive are printed, with their lines: kill them, or say why not.

Which lines a file of tests runs is recorded once, in `build/lines.json`; delete it to record anew. Lines that only
other processes run aren't seen.
"""

import ast
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy  # noqa: F401  what is loaded here isn't loaded by each run, which is forked
import pytest
import spacy  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
LINES = ROOT / "build" / "lines.json"
CODE = ("labelwise/", "scripts/", "spacy_per_label/")
MOVED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
DROPPED = (ast.Expr, ast.Assign, ast.AugAssign, ast.Return, ast.Raise, ast.Delete)
PATIENCE = 5  # times that a run may take of what it took when it was recorded, and a minute


class Mutant(NamedTuple):
    file: str
    line: int
    kind: str
    was: str
    code: str


def mutants_of(file: Path) -> Iterator[Mutant]:
    """Yield each mutant of the functions of a file; the tree is changed and changed back."""
    tree = ast.parse(file.read_text(encoding="utf8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    nodes = {id(node): node for function in functions for one in function.body for node in ast.walk(one)}

    def mutant(node: ast.AST, kind: str, was: ast.AST) -> Mutant:
        return Mutant(str(file.relative_to(ROOT)), node.lineno, kind, ast.unparse(was), ast.unparse(tree))

    for node in nodes.values():
        for keyword in list(node.keywords) if isinstance(node, ast.Call) else ():
            place = node.keywords.index(keyword)
            node.keywords.remove(keyword)
            yield mutant(keyword, "argument", keyword)
            node.keywords.insert(place, keyword)
        for place, edge in enumerate(node.ops) if isinstance(node, ast.Compare) else ():
            if type(edge) in MOVED:
                node.ops[place], before = MOVED[type(edge)](), ast.unparse(node)
                yield mutant(node, "edge", ast.parse(before))
                node.ops[place] = edge
    for owner in {id(node): node for node in [*functions, *nodes.values()]}.values():
        for name in ("body", "orelse", "finalbody"):
            block = getattr(owner, name, None)
            for place, node in enumerate(block) if isinstance(block, list) else ():
                is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
                if isinstance(node, DROPPED) and not is_text:
                    block[place] = ast.Pass()
                    yield mutant(node, "statement", node)
                    block[place] = node


class Recorder:
    """A plugin of pytest that writes down which lines of the code are run."""

    def __init__(self, root: Path) -> None:
        self.root, self.lines = str(root) + "/", dict[str, set[int]]()

    def trace(self, frame: Any, event: str, argument: Any) -> Any:
        path = frame.f_code.co_filename
        return self.own if path.startswith(self.root) and path[len(self.root) :].startswith(CODE) else None

    def own(self, frame: Any, event: str, argument: Any) -> Any:
        if event == "line":
            self.lines.setdefault(frame.f_code.co_filename[len(self.root) :], set()).add(frame.f_lineno)
        return self.own

    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        sys.settrace(self.trace)


def run(root: Path, file: str, seconds: float, lines: Path | None = None) -> tuple[int, float]:
    """Run a file of tests in a process of its own; returns its status, that of a failure if it takes too long."""
    start = time.monotonic()
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        os.chdir(root)
        for stream in (1, 2):
            os.dup2(os.open(root / "run.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        sys.path[:] = [str(root), *(path for path in sys.path if path not in ("", str(ROOT)))]
        for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "labelwise", "scripts")]:
            del sys.modules[name]
        recorder = Recorder(root)
        quiet = ["-x", "-q", "-p", "no:cacheprovider", "--basetemp", str(root / "temporary"), "--tb=no"]
        status = pytest.main([*quiet, "-m", "not long and not nightly", file], [recorder] if lines else [])
        sys.settrace(None)
        if lines:
            lines.write_text(json.dumps({name: sorted(found) for name, found in recorder.lines.items()}))
        os._exit(int(status))
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() - start > seconds:
            os.killpg(child, 9)
        time.sleep(0.05)
    return os.waitstatus_to_exitcode(ended[1]), time.monotonic() - start


def copy_repository(folder: Path) -> None:
    """Copy the repository's files, as they are now, into a repository of its own: some tests list them."""
    shutil.rmtree(folder, ignore_errors=True)
    listed = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True)
    for name in filter(lambda name: (ROOT / name).is_file(), listed.splitlines()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)


def record(copy: Path, folders: list[str]) -> dict[str, Any]:
    """Record the seconds and the lines of each file of tests that passes, those that aren't recorded yet."""
    found = json.loads(LINES.read_text()) if LINES.is_file() else {}
    given = [copy / folder for folder in folders]
    paths = sorted(path for one in given for path in ([one] if one.is_file() else one.rglob("test_*.py")))
    for file in (str(path.relative_to(copy)) for path in paths if "mutations" not in path.parts):
        if file not in found:
            status, seconds = run(copy, file, 3600, copy / "lines.json")
            print(f"{seconds:6.1f} s  {file}{'' if status in (0, 5) else ': it fails, and is left out'}", flush=True)
            lines = json.loads((copy / "lines.json").read_text()) if not status else {}
            found[file] = {"seconds": seconds, "lines": lines}
            LINES.write_text(json.dumps(found))
    return found


def main(folder: str, count: int = 100, seed: int = 0, *folders: str) -> None:
    """Sample mutants of a folder, and run the tests of some folders or files, or of all, against them."""
    copy = ROOT / "build" / f"mutants-{folder.replace('/', '-')}"
    copy_repository(copy)
    tests = record(copy, [*folders] or ["tests"])
    mutants = [one for file in sorted((ROOT / folder).rglob("*.py")) for one in mutants_of(file)]
    killed: Counter[str] = Counter()
    sample = random.Random(seed).sample(mutants, min(count, len(mutants)))
    for one in sorted(sample):
        (copy / one.file).write_text(one.code, encoding="utf8")
        own = [name for name in tests if one.line in tests[name]["lines"].get(one.file, ())]
        for name in sorted(own, key=lambda name: tests[name]["seconds"]):
            if run(copy, name, PATIENCE * tests[name]["seconds"] + 60)[0]:
                killed[one.kind] += 1
                break
        else:
            print(f"{one.file}:{one.line}: {one.kind}: {one.was}  ({len(own)} files of tests)", flush=True)
        shutil.copy(ROOT / one.file, copy / one.file)
    kinds = Counter(one.kind for one in sample)
    shares = ", ".join(f"{killed[kind]} of {n} of kind {kind}" for kind, n in sorted(kinds.items()))
    print(f"{folder}: {sum(killed.values())} of {len(sample)} mutants are killed, of {len(mutants)}: {shares}")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:4]), *sys.argv[4:])
