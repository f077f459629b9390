"""Any bytes as any source give an error that names it, or tasks and problems that account for all of it.

Hypothesis changes the files of each format's tests, as bytes or as values of JSON.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spacy.tokens import DocBin

from labelwise.annotations import Item, Problem, Reason, Task
from labelwise.base.errors import InputError
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.datasets.convert_brat import convert_brat
from labelwise.sources import brat
from labelwise.sources.formats import FORMATS, read_items
from tests.conftest import Merging
from tests.corpus.test_docbin import annotated_docs, make_docs
from tests.sources import test_conll, test_label_studio, test_rows
from tests.sources.reading import make_database, write_parquet
from tests.sources.second_count import lost_of_conll, lost_of_webanno
from tests.sources.test_webanno import COUNTED, LAYERS, emoji, tsv

TEXT = "Add 5 mL of a cat's don't, twice."
TASKS: list[Any] = [
    {"text": TEXT, "spans": [{"start": 4, "end": 8, "label": "A"}, {"start": 4, "end": 5, "label": "B"}]},
    {"text": TEXT, "spans": [{"start": 4, "end": 8, "label": "A", "answer": "reject"}], "_timestamp": 5},
    {"text": TEXT, "spans": [{"start": 12, "end": 17, "label": "C"}], "_view_id": "ner", "answer": "reject"},
    {"text": "e\u0301 \U0001f600\r\n x", "spans": [], "answer": "ignore", "_annotator_id": "ann"},
    {"text": TEXT, "_view_id": "review", "view_id": "ner_manual", "_session_id": "a-ann", "_input_hash": 1},
    {"text": TEXT, "tokens": [{"text": "Add", "start": 0, "end": 3, "id": 0}], "spans": [], "no_missing": True},
    {"text": TEXT, "_labelwise_uncovered": {"A": "partial"}, "_labelwise_document": "d.txt", "meta": {"x": 1}},
]
BRAT = [
    (TEXT, "T1\tA 4 8\t5 mL\nT2\tB 4 5;6 8\t5 mL\nE1\tA:T1\nR1\tX Arg1:T1 Arg2:T2\n#1\tNote T1\tx\n\nstray\n"),
    ("\ufeffone\r\n\U0001f600 cat\r\n", "T1\tA 0 3\tone\nT2\tA 7 10\tcat\nT3\tB 0 3;7 10\tone cat\n"),
    ("cat cat  cat", "T1\tA 1 4\tcat\nT2\tA 1 4;5 8\tcat cat\nT1\tA 0 3\tcat\rT5\tA 5 2\tx\rT3\tA 3 3\t\n"),
]
NAMES = (
    *("prodigy.jsonl", "rows.jsonl", "studio.json", "tokens.conll", "webanno.tsv", "table.parquet", "docs.spacy"),
    "prodigy.db",
)
# The datasets of each merge, each with a file.
DATASETS: tuple[dict[str, Any], ...] = (
    {"labels": ["A", "B", "X"], "absent": ["C"]},
    {"labels": ["A", "PER"], "kind": "binary"},
    {"labels": ["C", "A"], "split": "test"},
)
FILES = 6  # of a merge
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3) | st.just("A"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=4,
)


def lines_of(rows: list[Any]) -> bytes:
    return b"\n".join(row.encode() if isinstance(row, str) else json.dumps(row).encode() for row in rows)


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[bytes]]:
    """Files to begin with, by name."""
    folder = tmp_path_factory.mktemp("seeds")
    make_database(folder / "seed.db", {str(number): TASKS[number:] for number in range(FILES)})
    tagged = [row for row, _ in test_rows.ROWS if isinstance(row, dict) and "tokens" in row and "spans" not in row]
    studio = [[row, test_label_studio.task()] for row, _ in test_label_studio.ROWS]
    webanno = [*(lines for lines, _ in COUNTED), LAYERS, emoji(2)]
    return {
        "prodigy.jsonl": [
            lines_of(TASKS),
            lines_of(TASKS).replace(b"\n", b"\r\n") + b'\n{oops\n{"text": "caf\xe9"}\n\n',
        ],
        "rows.jsonl": [lines_of([row for row, _ in test_rows.ROWS])],
        "studio.json": [json.dumps(rows).encode() for rows in studio],
        "tokens.conll": [text if isinstance(text, bytes) else text.encode() for text, _ in test_conll.SENTENCES],
        "webanno.tsv": [*(tsv(*lines).encode() for lines in webanno), tsv(*LAYERS, end="\r\n").encode()],
        "table.parquet": [write_parquet(folder / "seed.parquet", tagged[:1] * 2).read_bytes()],
        "docs.spacy": [
            DocBin(["ENT_IOB", "ENT_TYPE"], True, docs).to_bytes() for docs in (make_docs(), annotated_docs())
        ],
        "prodigy.db": [(folder / "seed.db").read_bytes()],
        "doc.ann": [f"{text}\0\0{ann}".encode() for text, ann in BRAT],
    }


@st.composite
def changed(draw: Any, seeds: list[bytes]) -> bytes:
    """Draw a seed with other values of JSON, or other bytes."""
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
    """Replace a random value inside a value of JSON."""
    if isinstance(value, dict | list) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
        value[key] = replace(draw, value[key])
        return value
    return draw(JSON)


def files_of(seeds: list[bytes]) -> st.SearchStrategy[list[bytes]]:
    return st.lists(changed(seeds), min_size=3, max_size=FILES)


def search(check: Callable[..., None], merges: int, **strategies: Any) -> None:
    """Run a check on many inputs, within a test's folder."""
    ignored = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    settings(max_examples=merges, deadline=None, derandomize=True, database=None, suppress_health_check=ignored)(
        given(**strategies)(check)
    )()


def merge_files(merging: Merging, name: str, files: list[bytes]) -> int:
    """Check that no accepted file loses anything, and merge them; return the number of rows."""
    merging.declared.clear()
    merging.add("own", ["C"], [{"text": TEXT}])
    texts = {TEXT}
    for number, data in enumerate(files):
        path = merging.root / "tasks" / f"{number}-{name}"
        path.write_bytes(data)
        database = path.suffix == ".db"
        with suppress(InputError):
            items = list(read_items(path, str(number) if database else ""))
            assert list(find_dropped(path, data, items)) == []
            texts |= {item.text for item in items if isinstance(item, Task)}
            place = {"db": path.name, "path": None} if database else {"path": path.name}
            merging.add(str(number), rows=[], expect_losses=True, **place, **DATASETS[number % len(DATASETS)])
    rows = merging.run().rows.total()
    merged_texts = {doc.text for file in merging.root.glob("corpus/*/*.spacy") for doc in read_stored_docs(file)}
    assert merged_texts <= texts
    return rows - 1


def find_dropped(path: Path, data: bytes, items: list[Item]) -> Iterator[object]:
    """Yield what a second count of the file has, and the read items lack."""
    incomplete_read = Reason.INCOMPLETE_READ in [item.reason for item in items if isinstance(item, Problem)]
    if path.suffix == ".jsonl" and items:
        lines = [line for line in data.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
        read_lines = {item.line for item in items}
        if len(read_lines) != len(lines):
            yield f"{len(lines)} lines, {len(read_lines)} items"
    elif path.suffix == ".conll":
        text = data.decode("utf8", "surrogateescape")
        named = re.search(r"(?m)(^|\r)\W?(#\s*global\.columns| *1[\t ])", text)
        yield from lost_of_conll(path, items, None if named else -1)
    elif path.suffix == ".tsv" and data.removeprefix(b"\xef\xbb\xbf").startswith(b"#FORMAT=WebAnno TSV"):
        head, *blocks = data.split(b"\n\n", 1)
        layers = {tsv(*lines).encode().split(b"\n\n")[0]: columns for lines, columns in COUNTED}
        columns = () if b"#T_" in b"".join(blocks) else layers.get(head, ())
        lost = lost_of_webanno(path, items, columns) if items and isinstance(items[0], Task) else {}
        yield from (kind for kind, count in lost.items() if count and (kind == "annotations" or not incomplete_read))
    elif path.suffix == ".json" and incomplete_read:
        yield Reason.INCOMPLETE_READ


def test_each_format_has_seeds() -> None:
    assert [format.name for format in FORMATS if not any(name.endswith(format.suffixes) for name in NAMES)] == []


@pytest.mark.guarantee("outcomes")
@pytest.mark.guarantee("any-bytes")
@pytest.mark.parametrize("merges", [12, pytest.param(200, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", NAMES)
def test_whatever_is_read_is_an_error_that_says_so_or_balances(name, merges, seeds, merging):
    read = []

    def check(files: list[bytes]) -> None:
        read.append(merge_files(merging, name, files))

    check([b"", b"\0", b"\0\0\0\xef\xbb\xbf", b"\xff" * 40, b"\n" * 9, b"{}", b"[]"])
    read.clear()
    search(check, merges, files=files_of(seeds[name]))
    assert any(read), "each change left nothing to read"


def test_each_t_line_of_brat_is_a_mention_or_a_problem(seeds, merging):
    options = {
        "encoding": st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "shift_jis", "gb18030"]),
        "missing_ann": st.sampled_from(brat.MissingAnn.__args__),
        "empty_ann": st.sampled_from(brat.EmptyAnn.__args__),
        "discontinuous": st.sampled_from(brat.Discontinuous.__args__),
        "shifted": st.sampled_from(brat.Shifted.__args__),
        "labels": st.sampled_from([(), ("A", "B")]),
    }
    folder, tasks = merging.root / "brat", merging.root / "tasks"
    folder.mkdir()

    def check(files: list[bytes], how: dict[str, Any]) -> None:
        for number in range(FILES):
            text, _, ann = files[number % len(files)].partition(b"\0\0")
            (folder / f"{number}.txt").write_bytes(text)
            (folder / f"{number}.ann").write_bytes(ann)
        with suppress(InputError):  # no text has an annotation
            converted = convert_brat(folder, tasks, brat.BratOptions(**how))
            ledger = merging.run()
            unread = sum(converted.problems[reason] for reason in ("no text", "malformed", "not annotated"))
            assert ledger.rows.total() == unread + converted.files.total() == FILES
            assert ledger.spans.total() == converted.lines["T"] + converted.lines["stray"]

    search(check, 12, files=files_of(seeds["doc.ann"]), how=st.fixed_dictionaries(options))
