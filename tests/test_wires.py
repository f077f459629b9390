"""Each option of each command and each setting of project.yml takes effect.

A row names an option, two values, and what differs. A test finds missing rows: options by Typer, settings by their
Structs' fields, variables in project.yml.
"""

import gc
import importlib
import inspect
import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import pytest
import spacy
import srsly
import typer
from msgspec.structs import replace
from spacy.language import Language
from spacy.training import Example
from spacy.util import load_config
from thinc.api import fix_random_seed
from typer.testing import CliRunner

from labelwise.annotations import answer_digest
from labelwise.base import console
from labelwise.base.sections import CheckSection, DvcSection, PackageName, ReportSection, VarsSection
from labelwise.base.text import text_key
from labelwise.corpus.record import digest_corpus, write_record
from labelwise.corpus.tokenizer import TokenizerRules, make_nlp, read_rules
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.merge.merge_data import merge_data
from labelwise.merge.rules.settings import Settings
from labelwise.sources.brat import BratOptions
from labelwise.train import train_pipeline as training_run
from labelwise.train.config import fit_config
from labelwise.train.training_config import TrainingConfig
from spacy_per_label.component import make_per_label
from tests.compare.test_revisions import Repository
from tests.conftest import ROOT, TINY, Merging, read_docs, save_ruler, task, write_jsonl
from tests.report.report_inputs import make_docs, write_json, write_results
from tests.train.training import CPU, GPU
from tests.why.taught import teach

PROJECT = srsly.read_yaml(ROOT / "project.yml")
STRUCTS = {
    "brat": BratOptions,
    "merge": Settings,
    "tokenizer": TokenizerRules,
    "check": CheckSection,
    "report": ReportSection,
    "package": PackageName,
    "dvc": DvcSection,
    "vars": VarsSection,
}
# By command, the sections of project.yml that it reads.
READ_BY = {
    "convert_brat": {"brat", "dvc", "vars"},
    "merge": {"merge", "tokenizer"},
    "export": {"brat", "merge", "tokenizer", "vars"},
    "check_labels": {"check"},
    "report": {"report", "vars"},
    "package": {"package", "report"},
    "why": {"report"},
}


def command_of(name: str) -> typer.Typer:
    app = typer.Typer(add_completion=False)
    app.command()(getattr(importlib.import_module(f"scripts.{name}"), f"{name}_cli"))
    return app


COMMANDS = {file.stem: command_of(file.stem) for file in sorted((ROOT / "scripts").glob("[a-z]*.py"))}
CLICK = {name: typer.main.get_command(app) for name, app in COMMANDS.items()}


class Made(NamedTuple):
    """A command's exit status, output, files by path, and started processes."""

    status: int
    printed: str
    files: Mapping[str, bytes]
    forks: int


Seen = Callable[[Made], Any]


def files(pattern: str = "") -> Seen:
    timed = r"manifest\.json|tokenizer\.json|resources\.tsv|\.demo\.json|config\.cfg"
    return lambda result: {
        path: content
        for path, content in result.files.items()
        if re.search(pattern, path) and not re.search(timed, path)
    }


def names(result: Made) -> Any:
    return sorted(result.files)


def status(result: Made) -> Any:
    return result.status


def refusal(result: Made) -> Any:
    return result.printed


def forks(result: Made) -> Any:
    return result.forks


def printed(pattern: str) -> Seen:
    return lambda result: re.findall(pattern, result.printed)


def page(pattern: str) -> Seen:
    return lambda result: [
        re.findall(pattern, content.decode()) for path, content in result.files.items() if path.endswith(".html")
    ]


def field(file: str, *keys: str) -> Seen:
    def read(result: Made) -> Any:
        value = json.JSONDecoder().raw_decode(result.files[file].decode())[0]
        for key in keys:
            value = value[key]
        return value

    return read


def metadata(result: Made) -> Any:
    return [content for path, content in result.files.items() if path.endswith("METADATA")]


DECLARED = files(r"datasets\.yml$")
CORPUS, DATA = files(r"^corpus/(train|dev|test|labels)/"), files(r"\.jsonl$")
MODEL = files("model-best/(ner|tok2vec)/")
# What a command is given unless a row says otherwise; `@` is the folder of inputs.
GIVEN: dict[str, dict[str, Any]] = {
    "check_labels": {"corpus": "@/corpus", "out": "out"},
    "compare": {"revisions": ["of-main"]},
    "convert_brat": {"brat_dir": "@/brat", "out": "tasks"},
    "import_decisions": {"file": "@/decisions/decisions.jsonl"},
    "evaluate": {"pipeline": "cpu", "model": "@/ruler", "split": "@/corpus/test"},
    "export": {"source": "@/corpus", "out": "out", "originals": "@/demo_brat"},
    "label_raw": {"student": "tiny", "teacher": "@/ruler", "inputs": "@/raw", "corpus": "@/corpus"},
    "make_demo": {"out": "demo", "docs": 6, "labels": 3, "words": 40},
    "merge": {"datasets": ["@/tasks/datasets.yml"], "out": "corpus", "workers": 1},
    "package": {"pipeline": "cpu", "root": "project"},
    "predict": {"pipeline": "@/ruler", "inputs": ["@/raw"], "out": "out.jsonl"},
    "record": {"pipeline": "cpu"},
    "report": {"pipeline": "cpu", "root": "new"},
    "seeds": {"pipeline": "tiny", "corpus": "@/corpus", "seeds": 2},
    "train": {"pipeline": "tiny", "corpus": "@/corpus"},
    "train_curve": {"pipeline": "tiny", "corpus": "@/corpus"},
    "why": {"corpus": "@/animals/corpus", "asked": ["toad"], "datasets": "@/animals/tasks"},
}
ON_GPU = {"pipeline": "gpu", "gpu_id": 0}  # pretended
CONVERTED = {"source": "@/converted", "format": "prodigy"}
FOLDS = {"config": "@/tiny.cfg", "project": "@/check.yml", "workers": 1}
PEOPLE = {"corpus": "@/people/corpus", "asked": ["ann saw a cat"]}
# By command and parameter: two values, what differs, and what else is given.
OPTIONS: dict[str, dict[str, tuple]] = {
    "check_labels": {
        "corpus": ("@/corpus", "@/other", files("findings")),
        "out": ("out", "else", names),
        "config": (None, "@/tiny.cfg", field("out/findings.jsonl", "folds"), FOLDS),
        "project": ("@/check.yml", "@/bad.yml", status, FOLDS),
        "seed": (0, 1, files("trained-"), FOLDS),
        "workers": (1, 2, forks, FOLDS),
    },
    "compare": {
        "revisions": (["of-main"], ["of-better"], printed(r"0\.\d+")),
        "pipeline": ("cpu", "gpu", status),
        "spans": (False, True, printed("that only one of")),
        "find": ("", "fixed", printed("that only one of")),
        "format": ("table", "json", printed('"labels": {')),
    },
    "convert_brat": {
        "brat_dir": ("@/brat", "@/other_brat", DATA),
        "out": ("tasks", "else", names),
        "project": (None, "brat.yml", DATA),
        "prefix": ("", "x", files("datasets.yml")),
    },
    "import_decisions": {
        "file": ("@/decisions/decisions.jsonl", "@/more.jsonl", DATA),
        "project_root": (".", "below", names),
    },
    "evaluate": {
        "pipeline": ("cpu", "gpu", names),
        "model": ("@/ruler", "@/blank", field("metrics/cpu.json", "all_gold", "f")),
        "split": ("@/corpus/test", "@/corpus/dev", field("metrics/cpu.json", "texts")),
        "predictions": (None, "predictions.jsonl", names),
        "gpu_id": (-1, 0, files("device")),
        "workers": (1, 2, forks),
        "other_tokens": (True, False, status, {"model": "@/other_tokens"}),
    },
    "export": {
        "source": ("@/corpus", "@/predicted.jsonl", names),
        "out": ("out", "else", names),
        "format": ("brat", "doccano", names),
        "splits": ("train", "dev,test", names),
        "dropped": (False, True, names, {"format": "prodigy"}),
        "disagreements": (False, True, names, {"format": "prodigy"}),
        "originals": ("@/demo_brat", "@/brat", status),
        "accept_changed": (True, False, status, {"originals": "@/brat"}),
        "project": (None, "@/tokens/project.yml", DATA, CONVERTED),
    },
    "label_raw": {
        "student": ("tiny", "wide", names),
        "teacher": ("@/ruler", "@/blank", files("predicted/a")),
        "inputs": ("@/raw", "@/raw.txt", names),
        "corpus": ("@/corpus", "@/other", files("part-")),
        "gpu_id": (-1, 0, files("device")),
        "workers": (1, 2, forks),
    },
    "make_demo": {
        "out": ("demo", "else", names),
        "format": ("brat", "prodigy", names),
        "docs": (6, 7, lambda result: sum(path.endswith(".txt") for path in result.files)),
        "labels": (3, 2, files(r"\.ann$")),
        "words": (40, 80, files(r"\.txt$")),
        "noise": (0, 0.5, files(r"\.ann$")),
        "seed": (0, 1, files(r"\.txt$")),
    },
    "merge": {
        "datasets": (["@/tasks/datasets.yml"], ["@/tasks/datasets.yml", "@/more/tasks/datasets.yml"], CORPUS),
        "out": ("corpus", "else", names),
        "decisions": (None, "@/decisions", CORPUS),
        "metrics": (None, "merge.json", names),
        "project": (None, "@/tokens/project.yml", CORPUS),
        "workers": (1, 2, forks),
        "strict": (False, True, status),
    },
    "package": {"pipeline": ("cpu", "gpu", files("patterns.jsonl")), "root": ("project", "named", metadata)},
    "predict": {
        "pipeline": ("@/ruler", "@/blank", DATA),
        "inputs": (["@/raw"], ["@/raw", "@/raw.txt"], DATA),
        "out": ("out.jsonl", "else.jsonl", names),
        "gpu_id": (-1, 0, files("device")),
        "workers": (1, 2, forks),
    },
    "record": {"pipeline": ("cpu", "gpu", refusal)},
    "report": {"pipeline": ("cpu", "gpu", names), "root": ("new", "project", page("<h1>.*"))},
    "train": {
        "pipeline": ("tiny", "wide", MODEL),
        "corpus": ("@/corpus", "@/other", MODEL),
        "gpu_id": (-1, 0, files("device"), {"pipeline": "gpu"}),
        "gpus": (1, 2, files("launched"), ON_GPU),
        "seed": (0, 1, MODEL),
        "max_steps": (0, 4, files("tiny.tsv")),
        "workers": (1, 2, forks),
        "resume": (False, True, printed("Resuming from step 6")),
    },
    "seeds": {
        "pipeline": ("tiny", "wide", files("trained-")),
        "corpus": ("@/corpus", "@/other", status),
        "seeds": (2, 3, files("trained-")),
        "workers": (1, 2, files("trained-")),
    },
    "train_curve": {
        "pipeline": ("tiny", "wide", files("trained")),
        "corpus": ("@/corpus", "@/other", files("train_curve.json")),
        "seed": (0, 1, files("trained")),
        "max_steps": (0, 4, files("trained")),
        "workers": (1, 2, files("trained")),
    },
    "why": {
        "corpus": ("@/corpus", "@/other", printed("in (train|dev|test)"), {"asked": ["auto.jsonl"]}),
        "asked": (["toad"], ["frog"], printed(r"\w+\.jsonl:\d")),
        "datasets": ("@/animals/tasks", "@/more/tasks", status),
        "problems": (True, False, refusal, {"asked": None}),
        "predicted": (None, "cpu", printed(r"0\.\d\d"), PEOPLE | {"asked": ["people.jsonl:1"]}),
        "at": (0, 10, printed("no span is predicted"), PEOPLE | {"predicted": "cpu"}),
        "project": ("@/named.yml", "@/check.yml", printed("people, ann"), PEOPLE | {"predicted": "cpu"}),
    },
}
# By command, section and key: two values, what differs, and what else the section and the command are given.
SETTINGS: dict[tuple[str, str], dict[str, tuple]] = {
    ("convert_brat", "brat"): {
        "split": ("folder", "auto", names),
        "labels": ([], ["A"], DATA),
        "rename": ({}, {"A": "C"}, DATA),
        "missing_ann": ("skip", "empty", DATA),
        "empty_ann": ("empty", "skip", DATA, {}, {"brat_dir": "@/other_brat"}),
        "discontinuous": ("drop", "cover", DATA),
        "shifted": ("drop", "nearest", DATA),
        "encoding": ("utf-8", "latin-1", DATA),
        "folders": ("annotators", "labels", DECLARED, {}, {"brat_dir": "@/copies"}),
        "duplicates": ("", "union", DECLARED),
        "expect_losses": (False, True, DECLARED),
    },
    ("merge", "merge"): {
        "lang": ("en", "de", CORPUS),
        "duplicates": ("latest", "union", CORPUS),
        "annotators": ("half", "all", CORPUS),
        "conflicts": ("accept-wins", "reject-wins", CORPUS),
        "overlap": ("longest", "first", CORPUS),
        "coverage": ("by-label", "drop", CORPUS),
        "alignment": ("drop", "expand", CORPUS),
        "dev_ratio": (0.1, 0.5, CORPUS),
        "test_ratio": (0.1, 0.5, CORPUS),
        "split_by": ("", "place", CORPUS),
        "by": ([], ["place"], CORPUS),
        "split_salt": ("labelwise", "x", CORPUS),
        "near_duplicates": ("report", "group", CORPUS),
        "near_similarity": (0.5, 1.0, files("near_duplicates")),
        "docs_per_partition": (200, 1, names),
    },
    ("merge", "tokenizer"): {
        "infixes": ([], ["(?<=[0-9])(?=[a-z])"], CORPUS),
        "no_exceptions": ([], [r"[^\W_]\."], CORPUS),
        "block": (None, {"@tokenizers": "spacy.zh.ChineseTokenizer"}, CORPUS),
    },
    ("export", "brat"): {"encoding": ("utf-8", "latin-1", status)},
    ("export", "vars"): {"data": ("mine", "else", status, {}, {"originals": None})},
    ("export", "merge"): {"lang": ("en", "de", DATA, {}, CONVERTED)},
    ("export", "tokenizer"): {"infixes": ([], ["(?<=[a-z])(?=[aeiou])"], DATA, {}, CONVERTED)},
    ("check_labels", "check"): {
        "folds": (2, 3, field("out/findings.jsonl", "folds"), {"steps": 2}, FOLDS),
        "steps": (2, 4, files("trained-"), {"folds": 2}, FOLDS),
    },
    ("convert_brat", "dvc"): {
        "pipelines": (["cpu"], [], status),
        "seeds": ([], ["else"], status),
        "students": ([], ["else"], status),
    },
    ("convert_brat", "vars"): {"data": ("assets/demo", "assets/else", status)},
    ("report", "vars"): {"data": ("assets", "assets/demo", status, {}, {"root": "own"})},
    ("report", "report"): {
        "baseline": ("of-main", "of-better", page(r" since ([\w-]+)"), {}, {"root": "compare"}),
        "target_f1": (0.8, 0.1, page("<h1>.*? ready")),
        "annotators": (False, True, page('"annotator":"ann"'), {}, {"root": "new"}),
    },
    ("package", "package"): {
        "name": ("ner", "lab", names),
        "version": ("0.1.0", "2.0.0", names),
        "license": ("", "mit", metadata),
        "description": ("", "Finds.", metadata),
    },
    ("package", "report"): {"target_f1": (0.8, 0.1, metadata)},
    ("why", "report"): {"annotators": (False, True, printed("people, ann"), {}, PEOPLE | {"predicted": "cpu"})},
}
# What a command says, what else it is given, and the section of project.yml; `bar` is a progress bar.
SAID: list[tuple[str, list[str], dict[str, Any], dict[str, Any]]] = [
    ("check_labels", [r"\d+ suspected errors in \d+ texts; review them in the report", "bar compare"], {}, {}),
    ("check_labels", ["Training 2 pipelines", "2 of 2 is trained", "bar ask pipeline 2"], FOLDS, {}),
    (
        "convert_brat",
        [
            "Not converted, .*: 1 not annotated, 1 discontinuous, 1 mention differs",
            "Other lines, not converted: 1 ",
            "Converted 1 annotated document:",
            "bar convert",
        ],
        {},
        {},
    ),
    ("convert_brat", ["Converted, with a change: 1 "], {}, {"brat": {"shifted": "nearest"}}),
    ("import_decisions", ["Rows: 1 new", "has 1 decided case, in 1 row\n", "`weasel run all` merges them"], {}, {}),
    (
        "evaluate",
        [
            r"Scores on \d+ texts: metrics/cpu.json; \d+ words predicted, \d.* per second",
            "bar predict 5",
            r"bar write tables \d",
        ],
        {},
        {},
    ),
    ("export", [r"\d+ texts with \d+ spans: out"], {}, {}),
    ("export", ["Order: the most spans per word first"], {"source": "@/predicted.jsonl"}, {}),
    ("label_raw", [r"2 raw texts of \d+ words beside the gold: training/tiny/corpus", "bar predict 2"], {}, {}),
    ("label_raw", ["Raw texts that can't be used: 1 bad"], {"inputs": "@/animals/tasks/toad.jsonl"}, {}),
    ("make_demo", [r"Wrote demo\n6 documents, \d+ words", "bar make"], {}, {}),
    (
        "merge",
        [r"corpus: 34 texts, \d+ spans as entities", "prodigy --dropped", "near_duplicates: group", "bar merge"],
        {},
        {},
    ),
    (
        "package",
        [
            "No license is named",
            "Model card, with the labels that are ready:",
            r"MB\); to install it and its requirements:",
            "\npip install .*whl",
        ],
        {},
        {},
    ),
    ("predict", [r"2 texts of \d+ words: out.jsonl", "For annotators: .* out.jsonl FOLDER", "bar predict 2"], {}, {}),
    ("predict", ["Texts that can't be used: 1 bad"], {"inputs": ["@/animals/tasks/toad.jsonl"]}, {}),
    ("train", ["tiny.cfg, changed for this training: .*eval_frequency 2 -> 1"], {}, {}),
    ("train", [r"First epoch, so far: \d+ texts"], {"max_steps": 1}, {}),
    ("train", [r"(Each epoch|First epoch, so far): \d+ texts", r"words in \d+ seconds: \d.* per second"], {}, {}),
    ("train", [r"error on dev: 0\.\d+ \(0", "Best pipeline: training/tiny/model-best; curve: plots/tiny.tsv"], {}, {}),
    ("seeds", ["Training with seed 1", r"test +0 +0\.\d+", "has F1 of 2 trainings", "bar predict"], {}, {}),
    (
        "train_curve",
        [r"Training on half of train: \d+ of \d+ texts", r"all +\d+ +0\.\d+", "isn't known", "bar predict 4"],
        {},
        {},
    ),
    ("why", ["There are more than 20 texts"], {"corpus": "@/corpus", "asked": ["the"], "datasets": "@/converted"}, {}),
]
# Settings of the recognizer in a config: two values, and what differs of a pipeline that has learned a text.
RECOGNIZER: dict[str, tuple] = {
    "model": ({"hidden_width": 8}, {"hidden_width": 16}, lambda nlp: nlp.get_pipe("per_label").model.to_bytes()),
    "spans_key": ("labels", "found", lambda nlp: sorted(nlp("Ann").spans)),
    "scorer": ({"@scorers": "spacy.ner_scorer.v1"}, None, lambda nlp: "ents_f" in nlp.evaluate([example(nlp)])),
}
# Where the variables of project.yml arrive: the commands of project.yml, and their parameters.
TRAININGS = ("train-cpu", "train-small", "train-gpu", "train-curve", "student")
VARIABLES = {
    "data": {"convert-brat brat_dir", "merge datasets"},
    "pipeline": {f"{name} pipeline" for name in ("seeds", "train-curve", "compare", "predict", "package")},
    "seed": {f"{name} seed" for name in (*TRAININGS, "check-folds")},
    "teacher": {"student teacher", "student revisions"},
    "seeds": {"seeds seeds"},
    "steps": {f"{name} max_steps" for name in TRAININGS},
    "gpus": {"train-gpu gpus"},
    "workers": {
        f"{name} workers"
        for name in (
            "train-cpu",
            "train-small",
            "seeds",
            "train-curve",
            "evaluate-cpu",
            "evaluate-small",
            "check-folds",
            "predict",
            "student",
        )
    },
}


def test_no_option_no_setting_and_no_variable_is_left_out():
    options = {
        name: {parameter.name for parameter in command.params if parameter.name != "help"}
        for name, command in CLICK.items()
    }
    assert {name: rows.keys() for name, rows in OPTIONS.items()} == options
    fields = {(kind, name) for kind, struct in STRUCTS.items() for name in struct.__struct_fields__}
    rows = {(kind, name) for (_, kind), own in SETTINGS.items() for name in own}
    assert rows | {("vars", name) for name in VARIABLES} == fields - {("merge", "tokenizer")}
    assert SETTINGS.keys() == {(name, kind) for name, kinds in READ_BY.items() for kind in kinds}
    assert VARIABLES.keys() == PROJECT["vars"].keys()


def example(nlp: Language) -> Example:
    return Example.from_dict(nlp.make_doc("Ann met Bob"), {"entities": [(0, 3, "PERSON")]})


@pytest.mark.parametrize(("name", "row"), RECOGNIZER.items())
def test_a_setting_of_the_recognizer_changes_what_it_is_for(name, row):
    assert [*inspect.signature(make_per_label).parameters] == ["nlp", "name", *RECOGNIZER]
    *values, seen = row
    outputs = []
    for value in values:
        fix_random_seed(0)
        nlp = spacy.blank("en")
        nlp.add_pipe("per_label", config={name: value})
        nlp.initialize(lambda nlp=nlp: [example(nlp)])
        outputs.append(seen(nlp))
    assert outputs[0] != outputs[1]


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_variable_arrives_where_it_is_used(variable):
    """Each command of project.yml is parsed with two values."""
    value, arrived = PROJECT["vars"][variable], set()
    other = value + 3 if isinstance(value, int) else "else"
    for name, script in ((command["name"], line) for command in PROJECT["commands"] for line in command["script"]):
        parsed = []
        for choice in (value, other):
            values = {**PROJECT["vars"], variable: choice}
            line = re.sub(r"\$\{vars\.(\w+)\}", lambda arrived, values=values: str(values[arrived[1]]), script)
            module, *arguments = shlex.split(line)[2:]
            if module.startswith("scripts."):
                parsed.append(CLICK[module.removeprefix("scripts.")].make_context("", arguments).params)
        arrived |= {f"{name} {key}" for key in (parsed or [{}])[0] if parsed[0][key] != parsed[1][key]}
    assert arrived == VARIABLES[variable]


BAD, ANN, BOB = "{oops", {"_annotator_id": "ann"}, {"_annotator_id": "bob"}
ALIKE = "Wash the plate with warm water, then dry it on the rack by the window"


def add_data_sets(merging: Merging) -> None:
    """Add texts on which both values of each policy differ."""
    places = [task(f"cat {n} sat on a mat", (0, 3), meta={"place": "north" if n % 2 else "south"}) for n in range(16)]
    alike = [task(f"{ALIKE} {number}", (9, 14)) for number in range(12)]
    rows = [
        task("add 5 g. of salt at 60degC, don't stir", (20, 22)),
        task("big cat", (0, 3), _timestamp=1, **ANN),
        task("big cat", (4, 7), _timestamp=2, **ANN),
        task("old dog", (0, 3), **ANN),
        task("old dog", **BOB),
        task("wet owl", (0, 3)),
        task("one  two", (0, 3)),
        task("white rat", (6, 9)),
    ]
    merging.add("a", ["A"], [*rows, *places, *alike])
    judged = task("wet owl", (0, 3), answer="reject", _view_id="ner")
    merging.add("c", ["A"], [judged, task("one two"), BAD])
    merging.add("b", ["B"], [task("white rat", (0, 9), label="B")])


def add_brat(root: Path) -> None:
    """Add splits' folders with a discontinuous span, one beside its offsets, and a text without annotations.

    Another text is in two folders, with another label in each.
    """
    for name, label in (("ann", "A"), ("bob", "B")):
        write_text(root / f"copies/{name}/c.txt", "Eve left")
        write_text(root / f"copies/{name}/c.ann", f"T1\t{label} 0 3\tEve\n")
    folder = root / "brat"
    lines = ("A 0 3\tAnn", "B 8 11\tBob", "A 0 3;8 11\tAnn Bob", "A 5 8\tBob")
    for name, text in (("test/a", "Ann saw Bob at the café"), ("dev/b", "Nobody there")):
        (folder / name).parent.mkdir(parents=True)
        (folder / f"{name}.txt").write_text(text, encoding="utf8")
    written = [f"T{n}\t{line}\n" for n, line in enumerate(lines, 1)]
    (folder / "test/a.ann").write_text("".join([*written, "R1\tSees Arg1:T1 Arg2:T2\n"]))


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf8")


def write_yaml(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_yaml(path, content)


def add_project(root: Path, corpus: Path, ledger: dict[str, Any], ruler: Path, blank: Path) -> None:
    """Add a project with an evaluated pipeline that finds something, `cpu`, and one that finds nothing, `gpu`."""
    (root / "training").mkdir(parents=True)
    (root / "corpus").symlink_to(corpus)
    write_json(root / "metrics/merge.json", ledger)
    for name, source in (("cpu", ruler), ("gpu", blank)):
        model = Path(shutil.copytree(source, root / f"training/{name}/model-best"))
        kept = {"tables": root / "training" / name, "predictions": root / f"{name}.jsonl"}
        evaluate_pipeline(model, corpus / "test", root / f"metrics/{name}.json", **kept)
    write_yaml(root / "project.yml", {})


def add_starts(root: Path, ruler: Path) -> None:
    """Write a command's folder as it is before it runs."""
    start = root / "start"
    for command in ("train", "train_curve", "seeds"):
        folder = start / command
        (folder / "configs").mkdir(parents=True)
        for name in ("tiny", "wide"):
            shutil.copy(root / f"{name}.cfg", folder / "configs")
            if command != "train":
                model = folder / f"training/{name}/model-best"
                shutil.copytree(ruler, model)
                write_record(model, corpus=digest_corpus(root / "corpus"))
    shutil.copy(GPU, start / "train/configs/gpu.cfg")
    teach(start / "why", root / "people/corpus", steps=20)
    write_yaml(start / "convert_brat/brat.yml", {"brat": {"labels": ["A"]}})
    write_text(start / "convert_brat/configs/cpu.cfg", "")
    for path in ("convert_brat/assets/demo/brat/a", "report/own/assets/brat/a"):
        write_text(start / f"{path}.txt", "Eve left")
        write_text(start / f"{path}.ann", "")
    for path in ("import_decisions/project.yml", "import_decisions/below/project.yml"):
        write_yaml(start / path, {})
    for path in ("package/project", "package/named", "report/project", "report/new"):
        shutil.copytree(root / Path(path).name, start / path, symlinks=True)
    shutil.copytree(root / "new", start / "report/own", dirs_exist_ok=True)
    (start / "compare").mkdir()
    repository = Repository(start / "compare")
    for right, message in ((4, "main"), (16, "better")):
        repository.evaluate(right)
        repository.commit(message)
        repository.run("git", "tag", f"of-{message}")
    repository.evaluate(12)
    shutil.copytree(start / "compare", start / "report/compare", symlinks=True)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory, demo_corpus) -> Path:
    """All that rows name by `@`; `start` has a command's folder before it runs."""
    root = tmp_path_factory.mktemp("inputs")
    add_data_sets(Merging(root))
    Merging(root / "more").add("d", ["D"], [task("a newt", (2, 6), label="D")])
    animals = Merging(root / "animals")
    animals.add("toad", ["D"], [task("a toad", answer="ignore"), task("a frog"), BAD])
    animals.run()
    people = Merging(root / "people")
    people.add("people", ["A"], [task(f"ann saw a cat {number}", (10, 13), **ANN) for number in range(8)])
    people.run(dev_ratio=0, test_ratio=0)
    add_brat(root)
    for path, text in (
        ("other_brat/c.txt", "Eve left"),
        ("other_brat/c.ann", "T1\tA 0 3\tEve\n"),
        ("other_brat/d.txt", "Nobody came"),
        ("other_brat/d.ann", ""),
    ):
        write_text(root / path, text)
    (root / "nothing").mkdir()
    (root / "converted").symlink_to(demo_corpus.parent / "tasks")
    (root / "start/export/mine").mkdir(parents=True)
    for link in ("demo_brat", "start/export/mine/brat"):
        (root / link).symlink_to(demo_corpus.parent / "brat")
    # The tokenizer of no language loads in a tenth of the time of English's.
    merge_settings = Settings(lang="xx", dev_ratio=0.2, test_ratio=0.2, docs_per_partition=8)
    for name, settings in (
        ("corpus", merge_settings),
        ("other", replace(merge_settings, split_salt="x", test_ratio=0.6)),
    ):
        merge_data([root / "converted/datasets.yml"], root / name, settings)
    nlp = [make_nlp("xx", rules) for rules in (TokenizerRules(), TokenizerRules(), read_rules(ROOT / "project.yml"))]
    entities = dict(
        sorted((ent.text, ent.label_) for doc in read_docs(root / "other/test", nlp[0]) for ent in doc.ents)
    )
    ruler = save_ruler(
        root / "ruler", *((label, text) for text, label in entities.items() if len(text) % 9), nlp=nlp[0]
    )
    blank = save_ruler(root / "blank", ("PERSON", "nobody here"), nlp=nlp[1])
    save_ruler(root / "other_tokens", ("PERSON", "Ann"), nlp=nlp[2])
    for path in ("raw/a.txt", "raw/b.txt", "raw.txt"):
        write_text(root / path, f"{path} of Ann")
    ledger = json.loads((demo_corpus.parent / "merge.json").read_text())
    add_project(root / "project", root / "other", ledger, ruler, blank)
    shutil.copytree(root / "project", root / "named", symlinks=True)
    write_yaml(root / "named/project.yml", {"package": {"name": "other"}})
    (root / "predicted.jsonl").symlink_to(root / "project/cpu.jsonl")
    write_results(root / "new", make_docs(), in_train=(0, 0))
    write_results(root / "new", make_docs()[:40], "gpu")
    # Decisions about the first dataset's "white rat", and one about nothing.
    decision = {"dataset": "a", "text": text_key("white rat").hex(), "label": "A", "verdict": "gold is wrong"}
    wrong = decision | {"answer": answer_digest([(6, 9)]), "removed": [6, 9]}
    write_jsonl(root / "decisions/decisions.jsonl", [wrong])
    write_jsonl(root / "more.jsonl", [wrong, wrong | {"removed": [0, 5]}])
    for name, sections in (
        ("check", {"check": {"folds": 2, "steps": 2}}),
        ("bad", {"check": {"folds": 1}}),
        ("named", {"report": {"annotators": True}}),
        ("tokens/project", {}),
        ("tokens/configs/tokenizer", {"tokenizer": {"infixes": ["(?<=[a-z])(?=e)"]}}),
    ):
        write_yaml(root / f"{name}.yml", sections)
    steps = {**TINY, "training.max_steps": 6, "training.eval_frequency": 2}
    for name, width in (("tiny", 32), ("wide", 40)):
        overrides = steps | {"components.tok2vec.model.encode.width": width}
        load_config(CPU, overrides=overrides, interpolate=False).to_disk(root / f"{name}.cfg")
    add_starts(root, ruler)
    return root


def pretend_gpu(patched: pytest.MonkeyPatch) -> None:
    """Make commands record what they would do on a GPU."""
    write = Path("device").write_text
    for module in ("evaluate.evaluate_pipeline", "evaluate.predict", "evaluate.predict_files", "student.corpus"):
        patched.setattr(f"labelwise.{module}.use_gpu", lambda gpu_id: write(str(gpu_id)))
    patched.setattr("os.execv", lambda file, command: Path("launched").write_text(" ".join(command)))

    def train(recipe: TrainingConfig, *args: Any, **options: Any) -> None:
        write(str(recipe.gpu_id))
        Path("settings").write_text(fit_config(recipe).settings.to_str())

    patched.setattr("scripts.train.train_pipeline", train)


def pretend_training(patched: pytest.MonkeyPatch) -> None:
    """Make other commands' trainings record their arguments and return a pipeline; `train` has the rest."""

    def train(recipe: TrainingConfig, out: Path, *args: Any, **options: Any) -> None:
        fold = recipe.overrides.get("corpora.train.leave_out", "")
        Path(f"trained-{recipe.limit}-{recipe.seed}-{fold}").write_text(f"{recipe}")
        inputs = recipe.corpus.parent
        shutil.copytree(inputs / "ruler" if fold == "" else inputs / "start/why/training/cpu/model-best", out)

    for module in ("scripts.train_curve", "scripts.seeds", "labelwise.check.folds"):
        patched.setattr(f"{module}.train_once", train)


class ShownBar(console.Bar):
    """Prints that there is a progress bar, and its total."""

    def __init__(self, name: str, total: float | None) -> None:
        print("bar", name, total)
        super().__init__(name, total)


class Runner:
    """Runs commands in new folders; caches equal calls."""

    def __init__(self, inputs: Path, folder: Path) -> None:
        self.inputs, self.folder, self.known = inputs, folder, dict[str, Made]()
        self.forks = 0
        os.register_at_fork(after_in_parent=self.count)
        with pytest.MonkeyPatch.context() as patched:  # a checkpoint with only the last step left
            patched.setattr(training_run, "write_seen", lambda *args: 1 / 0)
            with pytest.raises(AssertionError):
                self.run("train", GIVEN["train"])
        [stopped] = folder.glob("*/training/tiny/model-best.checkpoint")
        shutil.copytree(stopped, inputs / "start/train/training/tiny/model-best.checkpoint")

    def count(self) -> None:
        self.forks += 1

    def resolve(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.resolve(one) for one in value]
        return re.sub(r"^@(?=/)", str(self.inputs), value) if isinstance(value, str) else value

    def arguments(self, command: str, values: Mapping[str, Any]) -> list[str]:
        options: list[str] = []
        positional: list[str] = []
        for parameter in CLICK[command].params:
            value = self.resolve(values.get(parameter.name))
            if parameter.param_type_name == "argument":
                positional += map(str, value if isinstance(value, list) else [value] if value is not None else [])
            elif parameter.is_flag:
                options += [parameter.opts[0]] * bool(value)
            elif value is not None:
                options += [parameter.opts[0], str(value)]
        return [*positional, *options]

    def run(self, command: str, options: Mapping[str, Any], section: Mapping[str, Any] = {}) -> Made:
        defaults = {parameter.name: parameter.default for parameter in CLICK[command].params}
        options = {name: value for name, value in options.items() if value is not None and value != defaults[name]}
        call = json.dumps([command, options, section], sort_keys=True)
        if call not in self.known:
            here = self.folder / str(len([*self.folder.iterdir()]))
            start = self.inputs / "start" / command
            shutil.copytree(start, here, symlinks=True) if start.is_dir() else here.mkdir()
            if section and "root" in options:
                shutil.copytree(here / options["root"], here / "root", symlinks=True)
                write_yaml(here / "root/project.yml", section)
                options["root"] = "root"
            elif section:
                if "tokenizer" in section:
                    write_yaml(here / "configs/tokenizer.yml", {"tokenizer": section["tokenizer"]})
                    section = {own: keys for own, keys in section.items() if own != "tokenizer"}
                others = (here / "project.yml").read_text(encoding="utf8") if (here / "project.yml").is_file() else ""
                for own in section:
                    others = re.sub(rf"(?m)^{own}:\n(?: .*\n)*", "", others)
                write_text(here / "sections.yml", others + srsly.yaml_dumps(section))
                options["project"] = "sections.yml"
            forks = self.forks
            gc.freeze()  # as `train_in` does
            with pytest.MonkeyPatch.context() as patched:
                patched.chdir(here)
                patched.setattr(console, "Bar", ShownBar)
                if "gpu_id" in options:
                    pretend_gpu(patched)
                if command in ("train_curve", "seeds", "check_labels"):
                    pretend_training(patched)
                result = CliRunner().invoke(COMMANDS[command], self.arguments(command, options), env={"COLUMNS": "400"})
            assert isinstance(result.exception, SystemExit | None), result.exc_info
            files = {path.relative_to(here).as_posix(): path for path in here.rglob("*") if path.is_file()}
            contents = {name: path.read_bytes() for name, path in files.items()}
            for wheel in (path for path in files.values() if path.suffix == ".whl"):
                with ZipFile(wheel) as archive:
                    contents |= {name: archive.read(name) for name in archive.namelist()}
            self.known[call] = Made(result.exit_code, result.output, contents, self.forks - forks)
        return self.known[call]


@pytest.fixture(scope="module")
def runner(inputs, tmp_path_factory) -> Runner:
    return Runner(inputs, tmp_path_factory.mktemp("runs"))


def rows(table: Mapping[Any, Mapping[str, tuple]]) -> list[Any]:
    rows = []
    for owner, own in table.items():
        for name, row in own.items():
            parts = [owner] if isinstance(owner, str) else owner
            rows.append(pytest.param(*parts, name, *row, *[{}] * (5 - len(row)), id=" ".join([*parts, name])))
    return rows


def differ(seen: Seen, results: Iterable[Made]) -> bool:
    one, other = results
    assert seen is refusal or one.status == 0, one.printed
    assert seen in (refusal, status) or other.status == 0, other.printed
    return seen(one) != seen(other)


@pytest.mark.parametrize(("command", "name", "one", "other", "seen", "options", "_"), rows(OPTIONS))
def test_an_option_changes_what_it_is_for(command, name, one, other, seen, options, _, runner):
    calls = (GIVEN[command] | options | {name: value} for value in (one, other))
    assert differ(seen, (runner.run(command, call) for call in calls))


@pytest.mark.parametrize(("command", "section", "name", "one", "other", "seen", "keys", "options"), rows(SETTINGS))
def test_a_setting_changes_what_it_is_for(command, section, name, one, other, seen, keys, options, runner):
    sections = ({section: keys | {name: value}} for value in (one, other))
    assert differ(seen, (runner.run(command, GIVEN[command] | options, own) for own in sections))


@pytest.mark.parametrize(("command", "patterns", "options", "section"), SAID)
def test_a_command_says_what_it_did_and_leaves_nothing_else(command, patterns, options, section, runner):
    result = runner.run(command, GIVEN[command] | options, section)
    assert not [pattern for pattern in patterns if not re.search(pattern, result.printed)], result.printed
    assert not [path for path in result.files if ".labelwise." in path]
