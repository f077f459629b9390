import ast
import doctest
import re
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "labelwise"
MODULES = set(PACKAGE.rglob("*.py"))
FOLDERS = sorted(file.parent for file in MODULES if file.name == "__init__.py" and file.parent != PACKAGE)


def name_of(folder: Path) -> str:
    return ".".join(folder.relative_to(PACKAGE).parts)


@cache
def imported(file: Path) -> set[Path]:
    files = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf8"))):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative"
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        files |= {path for name in names if (path := ROOT / (name.replace(".", "/") + ".py")).is_file()}
    return files


def allowed(folder: Path) -> set[str]:
    document = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf8")))
    first, last = document.split("\n\n")
    assert "\n" not in first, "one sentence says what the folder is"
    match = re.fullmatch(r"It imports (.*)\.", last.replace("\n", " "))[1]
    return set() if match == "no other folder of labelwise" else set(re.split(r", | and ", match))


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_folder_imports_what_it_says_and_all_of_that(folder):
    names = {name_of(other.parent) for file in folder.glob("*.py") for other in imported(file) & MODULES} - {""}
    assert names - {name_of(folder), "base"} == allowed(folder), "each may import base"


def test_there_are_no_circles():
    """A sorter raises a CycleError."""
    for graph in (
        {file: imported(file) & MODULES for file in MODULES},
        {name_of(folder): allowed(folder) for folder in FOLDERS},
    ):
        assert set(TopologicalSorter(graph).static_order()) == graph.keys()


@pytest.mark.parametrize(
    ("files", "others"),
    [(MODULES, "scripts|tests|benchmarks"), ((ROOT / "spacy_per_label").glob("*.py"), "labelwise|scripts|tests")],
    ids=["labelwise", "spacy_per_label"],
)
def test_a_package_imports_neither_scripts_nor_tests_and_the_recognizer_no_labelwise(files, others):
    lines = rf"(?m)^\s*(from|import) ({others})\b"
    assert [file for file in files if re.search(lines, file.read_text(encoding="utf8"))] == []


def test_readers_are_siblings():
    names = ("brat", "conll", "label_studio", "prodigy", "spacy_docs", "tagged_rows", "webanno")
    readers = {PACKAGE / f"sources/{name}.py" for name in names}
    assert readers <= MODULES
    assert {file.name: imported(file) & readers for file in readers if imported(file) & readers} == {}


def names_of(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
    return names


def test_what_a_docstring_or_a_comment_refers_to_is_there():
    """A reference is a module, or a name in one, in backticks: `votes.standing`, `merge.rules.votes`."""
    files = [*MODULES, *(ROOT / "scripts").glob("*.py"), *(ROOT / "spacy_per_label").glob("*.py")]
    modules: dict[str, set[str]] = {}
    for file in files:
        modules.setdefault(file.stem, set()).update(names_of(file))
        modules.setdefault(file.parent.name, set()).add(file.stem)
        modules.setdefault(file.parent.parent.name, set()).add(file.parent.name)
    stale = []
    for file in files:
        for first, attributes in re.findall(r"`([a-z_]+)\.([\w.]+)(?:\(\))?`", file.read_text(encoding="utf8")):
            names = [first, *attributes.split(".")]
            missing = any(name not in modules.get(of, {name}) for of, name in pairwise(names))
            if first not in OTHERS and attributes not in SUFFIXES and (first not in modules or missing):
                stale.append(f"{file.relative_to(ROOT)}: {first}.{attributes}")
    assert stale == []


# Names of objects, or of others' packages.
OTHERS = ["doc", "dvc", "labelwise", "meta", "name", "ner", "nlp", "spacy", "warmup_linear"]
SUFFIXES = ("py", "cfg", "yml", "json", "jsonl", "parquet", "spacy")  # of files that are called as a module is


WITH_EXAMPLES = [file for file in sorted(MODULES) if ">>>" in file.read_text(encoding="utf8")]


@pytest.mark.parametrize("file", WITH_EXAMPLES, ids=lambda file: file.stem)
def test_the_examples_of_docstrings_hold(file):
    tried = doctest.testmod(import_module(".".join(file.relative_to(ROOT).with_suffix("").parts)))
    assert tried.attempted > tried.failed == 0
