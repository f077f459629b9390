"""Any bytes as any source: an error that says so, or tasks and problems that balance; nothing of it is lost.

Hypothesis changes seeds of each format, as bytes or, where they are JSON, as values, and finds the smallest change
that breaks a promise.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.ledger import SPAN_OUTCOMES, Ledger, outcome_of
from labelwise.errors import InputError
from labelwise.merge.plan import MergeJob
from labelwise.merge.rules.answers import Answer
from labelwise.merge.rules.policies import Alignment, Conflicts, Duplicates, Overlap
from labelwise.merge.rules.settings import Settings, load_tokenizer
from labelwise.merge.runs import decode_task, encode_task
from labelwise.merge.text_result import find_problems, merge_one
from labelwise.sources import brat, rows
from labelwise.sources.convert_brat import encode_document
from labelwise.sources.declarations import DataSet
from labelwise.sources.formats import read_items
from labelwise.sources.items import MISCOUNTED, Item
from labelwise.sources.normalize import normalize_task
from labelwise.sources.prodigy import check_task
from labelwise.text import text_key
from tests.fuzz.seeds import HEADER, make_seeds
from tests.sources import conll_count, webanno_count

FILE = Path("fuzz.jsonl")
DATASETS = (
    DataSet("one", (FILE,), ("A", "B"), absent=("C",)),
    DataSet("two", (FILE,), ("A",), kind="binary"),
    DataSet("three", (FILE,), ("C", "A"), split="test"),
)
LABELS = ["A", "B", "C"]
NAMES = ("prodigy.jsonl", "rows.jsonl", "studio.json", "tokens.conll", "webanno.tsv", "table.parquet", "docs.spacy")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3) | st.just("A"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=4,
)


@st.composite
def policies(draw: Any) -> Settings:
    """Settings of a merge that raise no error on conflicts."""
    kinds = {"duplicates": Duplicates, "conflicts": Conflicts, "overlap": Overlap, "alignment": Alignment}
    chosen = {
        name: draw(st.sampled_from([value for value in kind.__args__ if value != "error"]))
        for name, kind in kinds.items()
    }
    return Settings(**chosen, normalize=draw(st.booleans()))


@st.composite
def changed(draw: Any, seeds: list[bytes]) -> bytes:
    """A seed, of which values of JSON are others, or bytes."""
    data = draw(st.sampled_from(seeds))
    if draw(st.booleans()):
        lines = data.split(b"\n")
        at = draw(st.integers(0, len(lines) - 1))
        with suppress(ValueError):
            lines[at] = json.dumps(replace(draw, json.loads(lines[at]))).encode()
        data = b"\n".join(lines)
    for _ in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, len(data)))
        new = draw(
            st.binary(max_size=3) | st.sampled_from([b"\xff", b"\n", b"\t", b'"', b"B-A", b"# ", b"T9\tA 0 3\tx\n"])
        )
        data = data[:start] + new + data[start + draw(st.integers(0, 3)) :]
    return data


def replace(draw: Any, value: Any) -> Any:
    """Draw one of the values in a value of JSON, and put another in its place."""
    if isinstance(value, dict | list) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
        value[key] = replace(draw, value[key])
        return value
    return draw(JSON)


def balance(items: Iterable[Item], chosen: Settings) -> Ledger:
    """Merge tasks as a merge does, in memory: every row and span has one outcome, or it is an error."""
    ledger = Ledger()
    texts: dict[str, list[Answer]] = {}
    for item in items:
        if item.task is not None:
            ledger.rows_read += 1
            ledger.spans_read += len(item.task.spans or ())
            task = normalize_task(item.task) if chosen.normalize else item.task
            check_task(task)
            text, task.text = task.text or "", None
            number = item.line % len(DATASETS)
            answer = Answer(DATASETS[number], item.line, decode_task(encode_task(task)), FILE, number)
            texts.setdefault(text, []).append(answer)
        if item.problem:
            outcome = outcome_of(item.problem)
            of_span = outcome in SPAN_OUTCOMES
            (ledger.spans if of_span else ledger.rows)[outcome] += 1
            ledger.rows_read += not of_span
            ledger.spans_read += of_span
    job = MergeJob(0, 1, [], b"", LABELS, chosen, Path(), {}, {})
    tokenizer = load_tokenizer(Settings())
    for text, answers in texts.items():
        key = text_key(text.encode("utf8", "surrogatepass"))
        answers.sort(key=lambda answer: answer.order[1:])
        made = merge_one(key, text, answers, job, tokenizer, ledger).made
        if made is not None and made.doc.to_doc(tokenizer.nlp.vocab).text != text:
            raise ValueError(f"{text!r} is another text now")
        list(find_problems(answers, ()))
    ledger.check()
    json.dumps(ledger.nested())
    return ledger


def read_file(path: Path, data: bytes) -> list[Item]:
    """Write a file, and read it; nothing if it is refused."""
    path.write_bytes(data)
    with suppress(InputError):
        return list(read_items(path, "a" if path.suffix == ".db" else ""))
    return []


def find_lost(path: Path, data: bytes, items: list[Item]) -> Iterator[object]:
    """Compare what was read with a second count of what a file has, and yield what is lost."""
    miscounted = MISCOUNTED in [outcome_of(item.problem) for item in items]
    if path.suffix == ".jsonl" and items:
        lines = [line for line in data.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
        found = [item for item in items if item.task or item.problem]
        if len(found) != len(lines):
            yield f"{len(lines)} lines, {len(found)} items"
    elif path.suffix == ".conll":
        text = data.decode("utf8", "surrogateescape")
        named = re.search(r"(?m)(^|\r)\W?(#\s*global\.columns| *1[\t ])", text)
        yield from conll_count.count_lost(path, items, None if named else -1)
    elif path.suffix == ".tsv" and data.removeprefix(b"\xef\xbb\xbf").startswith(b"#FORMAT=WebAnno TSV"):
        known = data.startswith(HEADER.encode()) and b"#T_" not in data[len(HEADER) :]
        lost = webanno_count.count_lost(path, items, (1, 2) if known else ()) if items and items[0].task else {}
        yield from (kind for kind, count in lost.items() if count and (kind == "annotations" or not miscounted))
    elif path.suffix == ".json" and miscounted:
        yield MISCOUNTED


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[bytes]]:
    return make_seeds(tmp_path_factory.mktemp("seeds"))


def search(check: Callable[..., None], examples: int, **strategies: Any) -> None:
    """Run a check on many inputs; it may use the folder of a test."""
    ignored = [HealthCheck.too_slow, HealthCheck.data_too_large]
    settings(max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=ignored)(
        given(**strategies)(check)
    )()


@pytest.mark.parametrize("examples", [60, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", [*NAMES, "prodigy.db"])
def test_whatever_is_read_is_an_error_that_says_so_or_balances(name, examples, seeds, tmp_path):
    """No sentence, row or annotation is lost; some of the changed files have something to read."""
    path, read = tmp_path / name, list[int]()

    def check(data: bytes, chosen: Settings) -> None:
        items = read_file(path, data)
        assert list(find_lost(path, data, items)) == []
        read.append(balance(items, chosen).rows_read)
        if path.suffix == ".spacy":
            with suppress(InputError):
                assert all(isinstance(doc.text, str) for doc in read_stored_docs(path))

    search(check, examples, data=changed(seeds[name]), chosen=policies())
    assert any(read), "each change left nothing to read"


def test_each_t_line_of_brat_is_a_mention_or_a_problem(seeds, monkeypatch):
    options = {
        "encoding": st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "shift_jis", "gb18030"]),
        "missing_ann": st.sampled_from(brat.MissingAnn.__args__),
        "discontinuous": st.sampled_from(brat.Discontinuous.__args__),
        "shifted": st.sampled_from(brat.Shifted.__args__),
        "labels": st.sampled_from([(), ("A", "B")]),
    }

    def check(data: bytes, chosen: Settings, given: dict[str, Any]) -> None:
        text, _, ann = data.partition(b"\0\0")
        contents = {".txt": text, ".ann": ann}

        def read(path: Path) -> bytes:
            if path.suffix not in contents:
                raise FileNotFoundError(path)
            return contents[path.suffix]

        monkeypatch.setattr(brat, "read_file", read)
        document = brat.read_document(Path("c/doc"), Path("c"), brat.Reading(**given))
        lost = [problem for problem in document.problems if problem.line and problem.reason in brat.NOT_CONVERTED]
        assert document.lines["T"] == len(document.mentions) + len(lost)
        if document.text is None:
            assert not document.mentions
            return
        assert all(0 <= one.start < one.end <= len(document.text) for one in document.mentions)
        task, problem = rows.parse_row(encode_document(document))
        assert balance([Item(1, task, problem)], chosen).spans_read == len(document.mentions)

    search(check, 60, data=changed(seeds["doc.ann"]), chosen=policies(), given=st.fixed_dictionaries(options))


@pytest.mark.parametrize("name", [*NAMES, "prodigy.db"])
@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\xef\xbb\xbf", b"\xff" * 40, b"\n" * 9, b"{}", b"[]"])
def test_next_to_nothing_is_read(name, data, tmp_path):
    assert balance(read_file(tmp_path / name, data), Settings()).rows_read <= 1
