"""What fuzzing runs, on some hundred inputs of each kind, without a fuzzer; and what fuzzing has found."""

from itertools import islice

import pytest

from labelwise.sources import conll, declarations, formats, label_studio, webanno
from labelwise.sources.items import Item
from labelwise.sources.json_array import read_array
from labelwise.sources.prodigy import Task, parse_task
from tests.fuzz.blind import run_changed
from tests.fuzz.seeds import SEEDS
from tests.fuzz.targets import TARGETS

INPUTS = 100


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_is_read_is_an_error_that_says_so_or_balances(name):
    target, seeds = TARGETS[name], SEEDS[name]()
    # A promise that is broken is an exception. That something was read, and so could break one, is what returns.
    assert sum(target.run(seed) > 0 for seed in seeds) > len(seeds) / 2
    assert run_changed(name, INPUTS), "each change left nothing to read"


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in TARGETS if name not in ("brat", "rows", "database", "spacy")])
def test_no_sentence_row_or_annotation_is_lost_of_many_inputs(name):
    assert run_changed(name, 2000, seed=1) > 50


def lose_sentences(path):
    """Read a file, but for every tenth sentence, as a reader with a mistake might."""
    return (found for place, found in enumerate(conll.read_conll(path)) if place % 10 != 1)


def lose_spans(columns, rows, places):
    spans, problems = webanno_spans(columns, rows, places)
    return spans[:4], problems


label_studio_values, declared = label_studio._values, declarations.read_entries
webanno_spans = webanno._spans


@pytest.mark.parametrize(
    ("name", "module", "function", "lossy"),
    [("conll", formats, "read_conll", lose_sentences), ("webanno", webanno, "_spans", lose_spans)],
)
def test_a_reader_that_loses_something_breaks_a_promise(monkeypatch, name, module, function, lossy):
    monkeypatch.setattr(module, function, lossy)
    with pytest.raises(AssertionError):
        run_changed(name, 300)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("doccano", {"doccano.Task": lambda text, spans, **rest: Task(text, spans[:1], **rest)}),
        ("doccano", {"jsonl.parse_row": lambda row, unsaid: parse_task(row)}),
        ("doccano", {"rows._is_prodigys": lambda row: False}),
        ("label-studio", {"label_studio._values": lambda annotation: (label_studio_values(annotation)[0][:1], [])}),
        ("label-studio", {"label_studio.read_array": lambda path: islice(read_array(path), 1)}),
        ("cells", {"prodigy_tables.parse_task": lambda row: (None, "bad JSON")}),
        ("declarations", {"declarations.read_entries": lambda file: declared(file)[:1]}),
    ],
)
def test_a_reader_of_json_that_loses_something_breaks_a_promise(monkeypatch, name, changes):
    own = {"doccano.miscounted": lambda *counts: Item(0, None), "label_studio.count_labels": lambda element: 0}
    for function, lossy in {**own, **changes}.items():
        monkeypatch.setattr(f"labelwise.sources.{function}", lossy)
    with pytest.raises(AssertionError):
        run_changed(name, 300)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\0\0\0\0", b"\xff" * 40, b"\n" * 9, b"{}", b"[]", b"\0\0\0\xef\xbb\xbf"]
)
def test_next_to_nothing_is_read(name, data):
    assert TARGETS[name].run(data) <= 1
