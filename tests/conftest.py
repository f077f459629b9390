import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pyarrow.parquet as pq
import pytest
import spacy
import typer
import yaml
from catalogue import REGISTRY, Registry
from spacy.attrs import ENT_IOB, ENT_TYPE, ORTH, SPACY
from spacy.lang.en import English
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.util import load_config
from spacy.vocab import Vocab
from typer.testing import CliRunner

from labelwise.annotations import ROW_PROBLEMS, SPAN_PROBLEMS
from labelwise.base import parallel
from labelwise.corpus.annotation import GOLD, INCORRECT, annotation_of, is_merged
from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.docbin_writer import DocWriter
from labelwise.corpus.import_checks import ImportCheck
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.manifest import find_partitions
from labelwise.corpus.queries import describe
from labelwise.corpus.tokenizer import make_nlp, read_rules, read_tokenizer
from labelwise.datasets.convert_brat import convert_brat
from labelwise.demo.write import make_demo
from labelwise.merge.checks import describe as describe_check
from labelwise.merge.merge_data import merge_data
from labelwise.merge.rules.policies import Policies
from labelwise.merge.rules.settings import Settings
from labelwise.train import train_pipeline
from tests.spacy_per_label.bert import tiny_bert  # noqa: F401  a fixture

ROOT = Path(__file__).parent.parent
# Tests fork after a transformer's tokenizer was used, which would be reported for each fork.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# More threads wait for each other, seven times as long where other processes run too, and forked processes lack them.
if torch := sys.modules.get("torch"):
    torch.set_num_threads(1)
SUBPROCESSES = str(ROOT / "tests" / "subprocesses")
# spaCy looks all packages' entry points, and all that is registered, through some 200 times a training, a tenth of a
# small one's time.
Registry._get_entry_points = cache(Registry._get_entry_points)  # type: ignore[method-assign]
registered = cache(lambda registry, count, get_all=Registry.get_all: get_all(registry))
Registry.get_all = lambda self: dict(registered(self, len(REGISTRY)))  # type: ignore[method-assign]
# Loading English's 1,347 exceptions takes a tenth of the tests' time. These are those that the tests' texts have;
# commands in other processes load all.
ENGLISH, USED = English.Defaults.tokenizer_exceptions, re.compile(r".*(\w\.|n['’]t|'s)")
English.Defaults.tokenizer_exceptions = {text: ENGLISH[text] for text in ENGLISH if USED.fullmatch(text)}
# With PyTorch, a process takes 25 ms to sum its PSS, at each evaluation, and 1 ms to return memory, at each job.
train_pipeline.tree_memory = lambda pid: (psutil.Process(pid).memory_info().rss, "RSS")
parallel.TRIM = None
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (SUBPROCESSES, os.environ.get("PYTHONPATH"))))
# What tests train is narrow, and learns little; numbers of steps are the tests' own.
TINY = {"components.tok2vec.model.encode.width": 32, "training.batcher.size": 300, "training.dropout": 0.1}


def make_narrow(config: Path, target: Path, eval_frequency: int) -> None:
    """Write a config with a narrow model that evaluates every `eval_frequency` steps."""
    overrides = TINY | {"training.eval_frequency": eval_frequency}
    load_config(config, overrides=overrides, interpolate=False).to_disk(target)


def real_corpus(name: str) -> Path:
    """Find a public corpus where `weasel assets benchmarks --extra` puts it, or beside the repository, or skip."""
    folders = [root / name for root in (ROOT / "assets", ROOT.parent / "shared" / "corpora")]
    # Weasel makes folders before it has anything for them.
    folders_with_files = [folder for folder in folders if folder.is_dir() and any(folder.iterdir())]
    return (
        folders_with_files[0]
        if folders_with_files
        else pytest.skip(f"{name} isn't here; `weasel assets benchmarks --extra` fetches it")
    )


def write_jsonl(path: Path, rows: list[Any]) -> None:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf8")


def read_jsonl(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]


def task(text: str, *spans: Sequence[Any], label: str = "A", **more: Any) -> dict[str, Any]:
    """Return a Prodigy task; spans are (start, end[, label[, answer]])."""
    keys = ("start", "end", "label", "answer")
    return {"text": text, "spans": [{"label": label} | dict(zip(keys, span, strict=False)) for span in spans], **more}


def write_docs(docs: Iterable[Doc], path: Path) -> None:
    writer = DocWriter()
    for doc in docs:
        writer.add(stored(doc), [token.idx for token in doc], [token.idx + len(token) for token in doc])
    writer.write(path)


def stored(doc: Doc) -> StoredDoc:
    columns = doc.to_array([ORTH, ENT_IOB, ENT_TYPE]).T
    groups = ([(span.start, span.end, span.label) for span in doc.spans.get(name, [])] for name in (GOLD, INCORRECT))
    merged = annotation_of(doc) if is_merged(doc) else None
    return StoredDoc(columns[0], doc.to_array(SPACY).astype(bool), *columns[1:], *groups, doc.vocab.strings, merged)


def read_docs(path: Path, nlp: Language) -> Iterator[Doc]:
    """Yield the gold Docs of a folder of partitions, with all that a merge wrote."""
    for partition in find_partitions(path):
        yield from DocBin().from_disk(partition.file).get_docs(nlp.vocab)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of heavy.txt; run the whole project's first, since they take longest."""
    heavy = {line for line in (ROOT / "tests/heavy.txt").read_text(encoding="utf8").splitlines() if line[:1] != "#"}
    for item in items:
        if item.nodeid.partition("[")[0] in heavy:
            item.add_marker("heavy")
    items.sort(key=lambda item: (item.path.name != "test_end_to_end.py", item.path.parent.name != "tests"))


def call(command: Callable[..., Any], *arguments: object, status: int = 0) -> str:
    """Call a command's function as its command line does; return its output."""
    app = typer.Typer()
    app.command()(command)
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "400"})
    assert done.exit_code == status, done.output
    assert isinstance(done.exception, SystemExit | None), done.exc_info
    return done.output


def call_line(line: str, status: int = 0) -> str:
    """Run a line such as "scripts.why corpus" in this process; return its output."""
    module, *arguments = shlex.split(line, comments=True)
    return call(getattr(import_module(module), f"{module.removeprefix('scripts.')}_cli"), *arguments, status=status)


def run_command(command: Iterable[object], cwd: Path, env: Mapping[str, str], status: int = 0) -> Any:
    """Run a command in a new process, check its exit status, and return subprocess's result."""
    arguments = [*map(str, command)]
    done = subprocess.run(arguments, cwd=cwd, env=env, timeout=1000, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def run_python(*command: object, cwd: Path = ROOT, **environment: str) -> str:
    """Run Python in a new process with the repository on its path; return its output."""
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return run_command([sys.executable, *command], cwd, {**os.environ, "PYTHONPATH": paths, **environment}).stdout


@contextmanager
def another_process(block: AbstractContextManager[Any]) -> Iterator[int]:
    """Yield the id of a process that is within a context manager."""
    inside, end = os.pipe(), os.pipe()
    other = os.fork()
    if other == 0:
        try:
            with block:
                os.write(inside[1], b"x")
                os.read(end[0], 1)
        finally:
            os._exit(0)
    os.read(inside[0], 1)
    try:
        yield other
    finally:
        os.write(end[1], b"x")
        os.waitpid(other, 0)


class Merging:
    """Datasets in a folder, and their merge."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.declared: list[dict[str, Any]] = []

    def add(self, name: str, labels: list[str], rows: list[Any], **options: Any) -> None:
        write_jsonl(self.root / "tasks" / f"{name}.jsonl", rows)
        self.declared.append({"name": name, "path": f"{name}.jsonl", "labels": labels, **options})
        (self.root / "tasks" / "datasets.yml").write_text(
            yaml.dump(self.declared, Dumper=yaml.CSafeDumper), encoding="utf8"
        )

    def run(self, out: str = "corpus", workers: int = 1, strict: bool = False, **settings: Any) -> Ledger:
        decisions = folder if (folder := self.root / "decisions").is_dir() else None
        options: dict[str, Any] = {"workers": workers, "strict": strict, "decisions": decisions, "may_be_empty": True}
        policies = settings.pop("policies", Policies())
        all_settings = Settings(**msgspec.structs.asdict(policies), **settings)
        ledger = merge_data([self.root / "tasks" / "datasets.yml"], self.root / out, all_settings, **options)
        assert all(words_of(ledger.checks)), "a check's words name its values"
        return ledger

    def files(self, out: str = "corpus") -> dict[str, bytes]:
        folder = self.root / out
        files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
        return {name: path.read_bytes() for name, path in files.items() if not name.startswith(".")}

    def lines(self, name: str, out: str = "corpus") -> list[Any]:
        return read_jsonl(self.root / out / name)

    def table(self, name: str, out: str = "corpus") -> list[dict[str, Any]]:
        return pq.read_table(self.root / out / f"{name}.parquet").to_pylist()

    def problems(self, out: str = "corpus") -> list[tuple[str, str, int, str]]:
        """Return (dataset, file, line, reason, details) of all problems."""
        rows = [*self.table("rows", out), *self.table("spans", out)]
        problems = [row for row in rows if row["detail"] or row["reason"] in (*ROW_PROBLEMS, *SPAN_PROBLEMS)]
        return [(row["dataset"], row["file"], row["line"], describe(row)) for row in problems]

    def docs(self, out: str = "corpus") -> dict[str, tuple[str, Doc]]:
        vocab, docs = Vocab(), {}
        for path in sorted((self.root / out).glob("*/*.spacy")):
            for doc in DocBin().from_disk(path).get_docs(vocab):
                assert doc.text not in docs, "a text is in the corpus twice"
                docs[doc.text] = (path.parent.name, doc)
        return docs


@pytest.fixture
def merging(tmp_path: Path) -> Merging:
    return Merging(tmp_path)


def words_of(checks: Iterable[ImportCheck]) -> list[str]:
    return [" ".join([sentence, remedy, *lines]) for sentence, remedy, lines in map(describe_check, checks)]


def merge_demo(root: Path, settings: Settings, **demo: Any) -> Path:
    """Make a demo corpus as brat, and merge it."""
    make_demo(root / "brat", **demo)
    convert_brat(root / "brat", root / "tasks")
    merge_data([root / "tasks" / "datasets.yml"], root / "corpus", settings, metrics=root / "merge.json")
    return root / "corpus"


def merge_few(root: Path, lang: str) -> Path:
    """Merge 30 demo texts with 4 labels, in several partitions, with the project's tokenizer."""
    rules = read_rules(ROOT / "project.yml")
    settings = Settings(lang=lang, tokenizer=rules, dev_ratio=0.2, test_ratio=0.2, docs_per_partition=8)
    return merge_demo(root, settings, docs=30, labels=4, words=100)


@pytest.fixture(scope="session")
def demo_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small corpus of no language: its tokenizer loads ten times as fast as English's."""
    return merge_few(tmp_path_factory.mktemp("demo"), "xx")


@pytest.fixture(scope="session")
def english_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return merge_few(tmp_path_factory.mktemp("english"), "en")


def save_ruler(folder: Path, *patterns: tuple[str, Any], nlp: Language | None = None) -> Path:
    nlp = nlp or spacy.blank("en")
    rules: Any = nlp.add_pipe("entity_ruler", name="ner", last=True)
    rules.add_patterns([{"label": label, "pattern": pattern} for label, pattern in patterns])
    nlp.to_disk(folder)
    return folder


@pytest.fixture(scope="session")
def ruler(demo_corpus, tmp_path_factory) -> Path:
    """A pipeline of rules, right about some test entities and wrong about others."""
    nlp = make_nlp(*read_tokenizer(demo_corpus / "tokenizer.json"))
    found = sorted({(ent.text, ent.label_) for doc in read_docs(demo_corpus / "test", nlp) for ent in doc.ents})
    patterns = dict(found[::2]) | {text: found[0][1] for text, _ in found[1::6]} | {"of": "UNKNOWN"}
    pairs = ((label, text) for text, label in patterns.items())
    return save_ruler(tmp_path_factory.mktemp("ruler") / "model", *pairs, nlp=nlp)
