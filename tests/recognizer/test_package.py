"""A pipeline with a head for each label goes out as a wheel: it carries one module, and needs nothing of labelwise."""

import inspect
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Span
from spacy.training import Example
from thinc.api import get_current_ops, require_cpu, set_current_ops

from labelwise.recognizer.per_label import PerLabelRecognizer
from tests.conftest import ROOT

MODULE = ROOT / "labelwise" / "recognizer" / "per_label.py"
TEXTS = ["The Bank of New York paid Ann.", "Ann went to New York.", "Zoë likes the Bank of Rome.", ""]
PIP = ["-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "-q"]


def found(nlp: Language, texts: list[str]) -> list:
    """Give what a pipeline finds in texts: entities, spans, and the bits of their probabilities."""
    docs = list(nlp.pipe(texts))
    kinds = [(doc.ents, doc.spans["labels"]) for doc in docs]
    spans = [[[[span.start, span.end, span.label_] for span in group] for group in kind] for kind in kinds]
    scores = [doc.spans["labels"].attrs["scores"] for doc in docs]
    return [spans, [[str(column.dtype), column.tobytes().hex()] for column in scores]]


def python(folder: Path, *command: object, path: str = "") -> str:
    """Run Python in a folder, with nothing in its path but the environment's packages and what is given."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        env=env | ({"PYTHONPATH": path} if path else {}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def plain() -> Iterator[None]:
    """Compute as spaCy does by itself, in which products of matrices are rounded otherwise than in labelwise."""
    before = get_current_ops()
    require_cpu()
    yield
    set_current_ops(before)


@pytest.fixture
def trained(plain) -> Language:
    """A pipeline that has learned spans in spans, which are no entities."""
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("labelwise_per_label", name="ner", config={"model": {"tok2vec": {"width": 32, "depth": 1}}})
    examples = []
    for text, gold in (
        (TEXTS[0], [(1, 5, "ORG"), (3, 5, "LOC"), (6, 7, "PER")]),
        (TEXTS[1], [(0, 1, "PER"), (3, 5, "LOC")]),
        (TEXTS[2], [(0, 1, "PER"), (3, 6, "ORG"), (5, 6, "LOC")]),
    ):
        reference = nlp.make_doc(text)
        reference.set_ents([], default="outside")
        reference.spans["gold"] = [Span(reference, *span) for span in gold]
        examples.append(Example(nlp.make_doc(text), reference))
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(40):
        nlp.update(examples, sgd=optimizer)
    return nlp


@pytest.mark.slow
def test_a_wheel_predicts_the_same_where_labelwise_is_not(trained, tmp_path):
    assert isinstance(trained.get_pipe("ner"), PerLabelRecognizer)
    expected = found(trained, TEXTS)
    assert [len(spans) for _, spans in expected[0]] == [3, 2, 3, 0]
    trained.to_disk(tmp_path / "model")
    (tmp_path / "out").mkdir()
    # `--build wheel` needs the package `build`, which isn't pinned; pip makes the wheel of the same sources.
    python(tmp_path, "-m", "spacy", "package", "model", "out", "--code", MODULE, "--build", "none")
    source = tmp_path / "out" / "en_pipeline-0.0.0"
    options = ["--use-pep517", "--no-build-isolation", "--no-deps", "--no-index"]
    python(tmp_path, *PIP, "wheel", *options, "-w", "wheels", source)
    [wheel] = (tmp_path / "wheels").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        code = {name for name in archive.namelist() if name.endswith(".py")}
    assert code == {"en_pipeline/__init__.py", "en_pipeline/per_label.py"}
    python(tmp_path, *PIP, "install", "--no-deps", "--no-index", "--target", "site", wheel)
    (tmp_path / "elsewhere").mkdir()
    script = f"""
import importlib.util, json, spacy
from spacy.language import Language
assert importlib.util.find_spec("labelwise") is None

{inspect.getsource(found)}
nlp = spacy.load("en_pipeline")
print(json.dumps([type(nlp.get_pipe("ner")).__module__, found(nlp, {TEXTS!r})]))
"""
    printed = python(tmp_path / "elsewhere", "-c", script, path=str(tmp_path / "site"))
    assert json.loads(printed) == ["en_pipeline.per_label", expected]
