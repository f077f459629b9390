"""Random mutants of a folder: count those that the tests kill.

    make mutants FOLDER=labelwise/report

A mutant drops a keyword argument (except `strict`), drops a statement, or moves the edge of a comparison. The sample
depends on the seed and the mutants alone, so edits of other code don't change it. Each mutant runs the tests that reach
its statement, the fastest first, those of other folders as if ten times as slow, for at most `SECONDS`, until one
fails that passes without it. Kill survivors, or explain them in CONTRIBUTING.md.

`build/mutants.json` records which statements a test runs; changed files are recorded again. Tests are imported once,
and each mutant runs in a fork where the functions of its file have its code. Code that runs at import isn't mutated.
"""

import ast
import gc
import json
import mmap
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from hashlib import blake2b
from itertools import count
from pathlib import Path
from resource import RLIMIT_CPU, RLIMIT_DATA, setrlimit
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "build" / "mutants.json"
CODE = ("labelwise", "scripts", "spacy_per_label")
FILES = [str(path.relative_to(ROOT)) for folder in CODE for path in sorted((ROOT / folder).rglob("*.py"))]
LINES = 4096  # of a file, at most
MOVED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
DROPPED = (ast.Expr, ast.Assign, ast.AugAssign, ast.Return, ast.Raise, ast.Delete)
SECONDS = 10  # of computing, for the tests of a mutant
LOOP = 6 * SECONDS  # of computing, then a mutant is in a loop; or three times this of waiting
MEMORY = 8 << 30  # a loop may fill it
OWN = {"scripts": "tests/test_wires.py"}
TOLD = os.fdopen(os.dup(1), "w", buffering=1)  # pytest captures what else is printed
SEEN = """
import builtins
if not hasattr(builtins, "seen_"):
    from mmap import mmap
    with open({!r}, "r+b") as file:
        builtins.seen_ = mmap(file.fileno(), 0)
"""  # all processes share it


Record = dict[str, tuple[float, dict[str, list[int]]]]


class Mutant(NamedTuple):
    file: str
    line: int
    kind: str
    was: str
    statement: int  # its first line
    number: int


def parse(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf8"))


def blocks_of(tree: ast.Module) -> list[list[ast.stmt]]:
    """Return the lists of statements within functions, without docstrings."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    owners = {id(node): node for function in functions for node in ast.walk(function)}.values()
    blocks = [getattr(owner, name, None) for owner in owners for name in ("body", "orelse", "finalbody")]
    return [block for block in blocks if isinstance(block, list) and block]


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def parts_of(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield a statement's nodes, without nested statements'."""
    stack: list[ast.AST] = [statement]
    while stack:
        yield (node := stack.pop())
        stack += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]


def mutants_of(file: str, tree: ast.Module) -> Iterator[Mutant]:
    """Yield each mutant of a file; the tree is changed while the mutant is in use."""
    numbers = count()
    for block in blocks_of(tree):
        for place, statement in enumerate(block):

            def mutant(node: Any, kind: str, was: str, statement: ast.stmt = statement) -> Mutant:
                return Mutant(file, node.lineno, kind, was, statement.lineno, next(numbers))

            for node in parts_of(statement):
                for keyword in [keyword for keyword in getattr(node, "keywords", ()) if keyword.arg != "strict"]:
                    where = node.keywords.index(keyword)
                    node.keywords.remove(keyword)
                    yield mutant(keyword, "argument", ast.unparse(keyword))
                    node.keywords.insert(where, keyword)
                for where, edge in enumerate(node.ops) if isinstance(node, ast.Compare) else ():
                    if type(edge) in MOVED:
                        was, node.ops[where] = ast.unparse(node), MOVED[type(edge)]()
                        yield mutant(node, "edge", was)
                        node.ops[where] = edge
            if isinstance(statement, DROPPED) and not is_text(statement):
                block[place] = ast.Pass()
                yield mutant(statement, "statement", ast.unparse(statement))
                block[place] = statement


def instrument(file: str, seen: Path) -> str:
    """Return a file's code, changed to record in `seen` which statements of functions run."""
    tree = parse(file)
    for block in blocks_of(tree):
        for statement in reversed([statement for statement in block if not is_text(statement)]):
            number = FILES.index(file) * LINES + statement.lineno
            block.insert(block.index(statement), ast.parse(f"seen_[{number}] = 1").body[0])
    first = next(place for place, one in enumerate([*tree.body, ast.Pass()]) if not is_text(one))
    tree.body[first:first] = ast.parse(SEEN.format(str(seen))).body
    return ast.unparse(ast.fix_missing_locations(tree))


def cpu_seconds() -> float:
    """Return CPU seconds of this process and its ended children: other load changes them little."""
    return sum(os.times()[:4])


class Recorder:
    """Pytest plugin that records the seconds and statements of tests that pass."""

    def __init__(self, seen: Path, record: Path) -> None:
        with seen.open("r+b") as file:
            self.seen = mmap.mmap(file.fileno(), 0)
        self.record, self.tests, self.passed = record, dict[str, Any](), set[str]()
        self.shared, self.own = dict[str, set[int]](), set[int]()

    def take(self) -> set[int]:
        hits = {hit.start() for hit in re.finditer(b"\1", self.seen)}
        self.seen[:] = bytes(len(self.seen))
        return hits

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Count a shared fixture's statements for each test that uses it."""
        if fixturedef.scope == "function":
            return (yield)
        self.own |= self.take()
        try:
            return (yield)
        finally:
            self.own |= (hits := self.take())
            self.shared[fixturedef.argname] = hits | self.shared.get(fixturedef.argname, set())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> Iterator[None]:
        self.take()
        self.own, start = set(), cpu_seconds()
        done = yield
        if item.nodeid in self.passed:
            lines = self.own.union(self.take(), *(self.shared.get(name, ()) for name in item.fixturenames))
            statements: dict[str, list[int]] = {}
            for line in sorted(lines):
                statements.setdefault(FILES[line // LINES], []).append(line % LINES)
            self.tests[item.nodeid] = [round(cpu_seconds() - start, 2), statements]
        if not nextitem:
            self.record.write_text(json.dumps(self.tests))
        return done

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid)


class Forks:
    """Pytest plugin that runs collected tests in forks."""

    def __init__(self, root: Path, work: Callable[["Forks"], None]) -> None:
        self.failed, self.work = root.with_suffix(".failed"), work
        self.items: dict[str, pytest.Item] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        self.work(self)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.write_text(report.nodeid)

    @cache  # noqa: B019  there is one of them
    def pass_now(self, *names: str) -> bool:
        """Return whether tests pass in time without a mutant."""
        return not self.run([*names], LOOP)

    def run(
        self, names: list[str], limit: int, prepare: Callable[[], None] = lambda: None, *, go_on: bool = False
    ) -> str:
        """Run tests until one fails; return its name, or ""."""
        self.failed.write_text("")
        start, items = time.monotonic(), [self.items[name] for name in names]
        if not (child := os.fork()):
            os.setpgid(0, 0)
            setrlimit(RLIMIT_CPU, (limit, limit))
            setrlimit(RLIMIT_DATA, (MEMORY, MEMORY))
            try:
                prepare()
                for place, item in enumerate(items, 1):
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=(*items, None)[place])
                    if not go_on and self.failed.read_text():
                        break
            finally:
                os._exit(0)
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() - start > 3 * limit:
                os.killpg(child, 9)
            time.sleep(0.02)
        return self.failed.read_text() or ("being stopped" if ended[1] else "")


def with_tests(root: Path, files: list[str], work: Callable[[Forks], None], *plugins: object) -> None:
    """Collect tests in a new process, and call `work` there."""
    if child := os.fork():
        assert not os.waitpid(child, 0)[1], f"see {root}.log"
        return
    os.chdir(root)
    sys.dont_write_bytecode, os.environ["PYTHONDONTWRITEBYTECODE"] = True, "1"
    for stream in (1, 2):
        os.dup2(os.open(root.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    sys.path[:] = [str(root), *(path for path in sys.path if path not in ("", str(ROOT)))]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", *CODE)]:
        del sys.modules[name]
    options = ["-q", "-p", "no:cacheprovider", "--basetemp", f"/tmp/{root.name}", "--tb=short"]
    os._exit(int(pytest.main([*options, "-m", "not long and not nightly", *files], [Forks(root, work), *plugins])))


def copy_repository(folder: Path) -> None:
    """Copy the files as they are into a new repository: some tests list them."""
    shutil.rmtree(folder, ignore_errors=True)
    listed = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True)
    for name in filter(lambda name: (ROOT / name).is_file(), listed.splitlines()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)


def digest(file: str) -> str:
    return blake2b((ROOT / file).read_bytes(), digest_size=8).hexdigest() if (ROOT / file).is_file() else ""


def record(copy: Path, folders: list[str]) -> Record:
    """Return seconds and statements of each test of some folders; record new and changed tests."""
    recorded = json.loads(RECORD.read_text()) if RECORD.is_file() else {}
    paths = [ROOT / folder for folder in folders]
    listed = {path for key in paths for path in ([key] if key.is_file() else key.rglob("test_*.py"))}
    files = sorted(str(path.relative_to(ROOT)) for path in listed if "mutations" not in path.parts)
    missing = [
        file for file in files if file not in recorded or any(digest(name) != was for name, was in recorded[file]["of"])
    ]
    if missing:
        copy_repository(copy)
        (seen := copy.with_suffix(".seen")).write_bytes(bytes(len(FILES) * LINES))
        for name in FILES:
            (copy / name).write_text(instrument(name, seen), encoding="utf8")
        recorder = Recorder(seen, copy.with_suffix(".json"))

        def work(forks: Forks) -> None:
            for file in missing:
                start = time.monotonic()
                recorder.record.write_text("{}")
                forks.run([name for name in forks.items if name.startswith(f"{file}::")], 3600, go_on=True)
                tests = json.loads(recorder.record.read_text())
                run_by = {name for _, lines in tests.values() for name in lines}
                recorded[file] = {"of": [[name, digest(name)] for name in sorted({file, *run_by})], "tests": tests}
                RECORD.with_suffix(".new").write_text(json.dumps(recorded))
                RECORD.with_suffix(".new").replace(RECORD)
                print(f"{time.monotonic() - start:6.1f} s  {file}: {len(tests)} tests pass", file=TOLD)

        with_tests(copy, missing, work, recorder)
        recorded = json.loads(RECORD.read_text())
    return {name: test for file in files for name, test in recorded[file]["tests"].items()}


def tests_of(mutant: Mutant, record: Record, own: str) -> list[str]:
    """Return the tests to run: those of the statement, in order, within `SECONDS` together, or one."""
    covering = [name for name, (_, lines) in record.items() if mutant.statement in lines.get(mutant.file, ())]
    own_tests = (name for name in record if name.startswith(own) and f"[{Path(mutant.file).stem}-" in name)
    covering = [*dict.fromkeys([*covering, *own_tests])]  # a test of a command may reuse what another one ran
    covering.sort(key=lambda name: record[name][0] * (1 if name.startswith(own) else 10))
    total, chosen = 0.0, list[str]()
    for name in covering:
        if not chosen or total + record[name][0] <= SECONDS:
            total += record[name][0]
            chosen.append(name)
    return chosen


def functions_of(file: str) -> list[FunctionType]:
    """Return the functions imported from a file."""
    return [value for value in gc.get_objects() if type(value) is FunctionType and value.__code__.co_filename == file]


def give_code(code: CodeType, functions: list[FunctionType]) -> None:
    """Replace functions' code by the same functions' in `code`, except lambdas of one line, which look alike."""
    new_codes: dict[tuple[str, int], CodeType | None] = {}
    codes = [code]
    for constant in codes:
        key = constant.co_qualname, constant.co_firstlineno
        new_codes[key] = None if key in new_codes else constant
        codes += [constant for constant in constant.co_consts if isinstance(constant, CodeType)]
    for function in functions:
        was = function.__code__
        with suppress(ValueError):  # a closure that was made has other variables
            function.__code__ = new_codes.get((was.co_qualname, was.co_firstlineno)) or was


def main(folder: str, number: int = 100, seed: int = 0, *folders: str) -> None:
    """Sample mutants of a folder, and run tests against them."""
    copy = ROOT / "build" / f"mutants-{folder.replace('/', '-')}"
    tests = record(copy, [*folders] or ["tests"])
    copy_repository(copy)
    files = [file for file in FILES if file.startswith(f"{folder}/")]
    mutants = [mutant for file in files for mutant in mutants_of(file, parse(file))]
    mutants.sort(key=lambda one: blake2b(f"{seed} {one.file} {one.kind} {one.was}".encode()).digest())
    sample = mutants[:number]
    own = OWN.get(folder, f"tests/{folder.removeprefix('labelwise/')}/")
    chosen = {mutant: tests_of(mutant, tests, own) for mutant in sample}
    killed: Counter[str] = Counter()

    def work(forks: Forks) -> None:
        functions = {file: functions_of(str(copy / file)) for file in files}
        gc.freeze()  # forks share imported modules
        for file in files:
            tree = parse(file)
            for mutant in mutants_of(file, tree):
                if mutant not in chosen:
                    continue
                (copy / file).write_text(ast.unparse(tree), encoding="utf8")  # for other processes, and later imports
                code = compile(ast.fix_missing_locations(tree), str(copy / file), "exec")
                failed = forks.run(chosen[mutant], LOOP, partial(give_code, code, functions[file]))
                shutil.copy(ROOT / file, copy / file)
                blamed = [failed] if failed in forks.items else chosen[mutant]  # all, if they were stopped
                sound = bool(failed) and forks.pass_now(*blamed)
                killed[mutant.kind] += sound
                outcome = f"killed by {failed}" if sound else f"SURVIVES {len(chosen[mutant])} tests {failed}"
                print(f"{file}:{mutant.line}: {mutant.kind}: {mutant.was}: {outcome}", file=TOLD)
        kinds = Counter(mutant.kind for mutant in sample)
        shares = ", ".join(f"{killed[kind]} of {n} of kind {kind}" for kind, n in sorted(kinds.items()))
        print(f"{folder}: {sum(killed.values())} of {len(sample)} mutants are killed: {shares}", file=TOLD)

    with_tests(copy, sorted({name.partition("::")[0] for own in chosen.values() for name in own}), work)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:4]), *sys.argv[4:])
