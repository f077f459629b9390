import json
import re
import shutil
import sys
import tomllib
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import spacy
from packaging.requirements import Requirement
from spacy.training import Example

from labelwise.base.counts import AllScores, Scores
from labelwise.base.device import use_gpu
from labelwise.base.errors import InputError
from labelwise.base.files import digest_folder
from labelwise.base.sections import PackageName
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.manifest import Manifest, RawTexts, SplitCounts
from labelwise.corpus.record import RECORD
from labelwise.corpus.seen_texts import SEEN_TEXTS
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.evaluate.predictions import read_predictions
from labelwise.evaluate.scores import Aimed, Metrics, Mistakes, Seen, SplitMetrics
from labelwise.package.card import write_card
from labelwise.package.wheel import identify, make_package
from labelwise.train.train_pipeline import train_pipeline
from labelwise.train.training_config import TrainingConfig
from scripts.evaluate import evaluate_cli
from scripts.package import package_cli
from scripts.report import report_cli
from tests.bare import bare_environment, in_bare
from tests.conftest import ROOT, TINY, call, run_python
from tests.package.building import build
from tests.report.report_inputs import make_docs, write_results
from tests.train.training import with_bert

BITS = """
import json, sys
import spacy
nlp = spacy.load(sys.argv[1])
texts = json.load(open(sys.argv[2]))
found = []
for doc in nlp.pipe(texts):
    spans = [(span.start_char, span.end_char, span.label_) for span in doc.ents]
    all_spans = doc.spans["labels"] if "labels" in doc.spans else []
    scores = [float(score).hex() for score in all_spans.attrs["scores"]] if len(all_spans) else []
    trf = doc._.trf_data if doc.has_extension("trf_data") else None
    tensor = (trf.tensors[0] if trf else doc.tensor).tobytes().hex()
    found.append([spans, [(span.start_char, span.end_char, span.label_) for span in all_spans], scores, tensor])
print(json.dumps(found))
"""


def project(root: Path, corpus: Path, pipeline: str, config: Path | None = None, **options: Any) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    (root / "corpus").symlink_to(corpus)
    (root / "metrics").mkdir()
    shutil.copy(corpus.parent / "merge.json", root / "metrics")
    model = root / "training" / pipeline / "model-best"
    config = config or ROOT / "configs" / f"{pipeline}.cfg"
    train_pipeline(TrainingConfig(config, corpus, **options), model, root / "curve.tsv")
    tables, predictions = model.parent, root / "predictions.jsonl"
    evaluation = evaluate_pipeline(model, corpus / "test", tables=tables, predictions=predictions)
    (root / "metrics" / f"{pipeline}.json").write_bytes(msgspec.json.encode(evaluation.metrics))
    return root


@pytest.fixture(scope="module", params=["cpu", pytest.param("ner", marks=pytest.mark.long)])
def trained(request, english_corpus, tmp_path_factory) -> Path:
    use_gpu(-1)  # as a command does
    steps = {"training.max_steps": 80, "training.eval_frequency": 80, "training.optimizer.learn_rate": 0.01}
    folder = tmp_path_factory.mktemp("project") / request.param
    return project(folder, english_corpus, "cpu", ROOT / f"configs/{request.param}.cfg", overrides=TINY | steps)


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Path:
    return bare_environment(tmp_path_factory.mktemp("bare") / "venv", "spacy", "pip")


def install(python: Path, *wheels: Path) -> None:
    options = ["--no-index", "--no-deps", "--disable-pip-version-check", "-q"]
    in_bare(python, "-m", "pip", "install", *options, *wheels)


def check(python: Path) -> None:
    """Assert that all that the installed packages require is there."""
    in_bare(python, "-m", "pip", "check")


def assert_same_bits(root: Path, pipeline: str, python: Path, package: str, monkeypatch, capsys) -> list[Any]:
    """Predict test with an installed package and with the project, and compare."""
    texts = root / "texts.json"
    texts.write_text(json.dumps([doc.text for doc in read_predictions(root / "predictions.jsonl")]))
    predictions = json.loads(in_bare(python, "-c", BITS, package, texts))
    use_gpu(-1)
    monkeypatch.setattr(sys, "argv", ["bits", str(root / "training" / pipeline / "model-best"), str(texts)])
    capsys.readouterr()
    exec(BITS, {})
    assert predictions == json.loads(capsys.readouterr().out)
    return predictions


@pytest.mark.guarantee("loads")
@pytest.mark.long
def test_an_installed_wheel_predicts_the_same_to_the_bit(trained, bare, tmp_path, monkeypatch, capsys):
    make_package(trained, "cpu", tmp_path / "dist", PackageName("brands", "1.2.0"))
    install(bare, *(tmp_path / "dist").glob("*.whl"))
    check(bare)
    with pytest.raises(AssertionError, match="No module named 'labelwise'"):
        in_bare(bare, "-c", "import labelwise")
    predictions = assert_same_bits(trained, "cpu", bare, "en_brands", monkeypatch, capsys)
    predicted = [[list(span) for span in doc.predicted] for doc in read_predictions(trained / "predictions.jsonl")]
    assert [sorted(spans) for spans, *_ in predictions] == predicted
    assert sum(map(len, predicted)) > 10
    # thinc's own choice, in the process that loads it, stays as it was.
    code = "import spacy, thinc.api; spacy.load('en_brands'); print(thinc.api.get_current_ops().use_blis)"
    assert in_bare(bare, "-c", code) == "True\n"


FIND = """
import spacy
print(len(spacy.load("en_ner")("Ann met Bob in Rome, and drank 5 mL of water on 5 May 2021.").spans["labels"]))
"""


@pytest.mark.parametrize("trained", ["cpu"], indirect=True)
def test_a_retrained_pipeline_replaces_the_one_that_is_installed(own, tmp_path):
    python = bare_environment(tmp_path / "venv", "spacy", "pip")
    (own / "project.yml").write_text("vars: {}\n")
    predictions = []
    for outside in (-50.0, 50.0):
        edit_model(own, "ner/cfg", lambda cfg, outside=outside: cfg | {"outside": outside})
        printed = call(package_cli, "cpu", "--root", own)
        (line,) = re.findall(r"(?m)^pip install (.*)$", printed)
        wheels = [Path(name) for name in line.split()]
        digest = digest_folder(own / "training/cpu/model-best")[:8]
        code = r"spacy_per_label-.*\+c[0-9a-f]{8}-py3-none-any\.whl"
        assert wheels[0].name == f"en_ner-0.1.0+m{digest}-py3-none-any.whl"
        assert re.fullmatch(code, wheels[1].name)
        install(python, *wheels)
        predictions.append(int(in_bare(python, "-c", FIND)))
    check(python)
    assert predictions[0] > predictions[1] == 0


TAG = """
import spacy
print([token.tag_ for token in spacy.load("en_ner_mine")("Ann likes cats")], spacy.load("en_ner_mine").pipe_names)
"""


def test_an_assembled_pipeline_is_evaluated_reported_and_packaged_as_it_is(own, tmp_path, monkeypatch):
    tagger = spacy.blank("en")
    tagger.add_pipe("tok2vec")
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96, "upstream": "tok2vec"}
    tagger.add_pipe("tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}})
    example = Example.from_dict(tagger.make_doc("They like dogs"), {"tags": ["NP", "V", "NNS"]})
    tagger.initialize(lambda: [example])
    tagger.to_disk(tmp_path / "tagger")
    [block] = re.findall(r"(?s)```ini\n(\[nlp\].*?)```", (ROOT / "docs" / "python.md").read_text(encoding="utf8"))
    (own / "own.cfg").write_text(block.replace("en_core_web_sm", str(tmp_path / "tagger")))
    (own / "project.yml").write_text("vars: {}\n")
    code = ("--code", ROOT / "labelwise/train/registry.py")
    run_python("-m", "spacy", "assemble", "own.cfg", "training/mine/model-best", *code, cwd=own)
    monkeypatch.chdir(own)
    ours, mine = (msgspec.json.decode((own / "metrics/cpu.json").read_bytes(), type=Metrics), own / "metrics/mine.json")
    printed = call(evaluate_cli, "mine")
    scores = msgspec.json.decode(mine.read_bytes(), type=Metrics)
    assert (scores.all_gold, scores.seen) == (ours.all_gold, ours.seen)
    assert ours.seen is not None
    assert "Unknown whether" not in printed
    assert "Unknown whether" not in call(report_cli, "mine")
    call(package_cli, "mine")
    python = bare_environment(tmp_path / "venv", "spacy", "pip")
    install(python, *(own / "dist/mine").glob("*.whl"))
    tags, names = in_bare(python, "-c", TAG).strip().split("] [")
    assert set(re.findall(r"'(\w+)'", tags)) <= {"NP", "V", "NNS"}
    assert names.startswith("'tok2vec', 'ner', 'tagger'")
    edit_model(own, RECORD, lambda record: record | {"files": {}})
    assert "Unknown whether" in call(evaluate_cli, "mine")


def edit_model(root: Path, name: str, edit: Callable[[Any], Any]) -> None:
    """Edit a JSON file of the pipeline, as if trained and evaluated so."""
    model, file = root / "training/cpu/model-best", root / "metrics/cpu.json"
    (model / name).write_text(json.dumps(edit(json.loads((model / name).read_text()))))
    file.write_text(json.dumps(json.loads(file.read_text()) | {"pipeline_digest": digest_folder(model)}))


@pytest.mark.parametrize(
    ("pipeline", "version", "name"),
    [
        ("cpu", "0.1.0", "brands-0.1.0+m80eae5ca"),
        ("small", "0.1.0", "brands_small-0.1.0+m80eae5ca"),
        ("deberta-v3.base", "1.0.0rc1", "brands_deberta_v3_base-1.0.0rc1+m80eae5ca"),
        ("XLM__R", "1.0.0+lab.2", "brands_xlm_r-1.0.0+lab.2.m80eae5ca"),
    ],
)
def test_a_wheel_is_named_after_its_pipeline_and_its_version_after_the_model(pipeline, version, name):
    identity = identify(PackageName("brands", version), pipeline, f"80eae5ca{'0' * 56}")
    assert f"{identity.name}-{identity.version}" == name
    assert f"en_{identity.name}".isidentifier()


USE_BOTH = """
import sys
import spacy
print([type(spacy.load(name).get_pipe("ner")).__module__ for name in ("en_one", "en_two")])
import labelwise.train.registry
from spacy_per_label import PerLabelRecognizer
print([isinstance(spacy.load(name).get_pipe("ner"), PerLabelRecognizer) for name in ("en_one", "en_two")])
from labelwise.report.page import write_report
assert "site-packages" in labelwise.__file__
write_report(sys.argv[1], "cpu", sys.argv[2])
"""
USE_ONE = "import spacy; print(spacy.load('en_two')('Ann.').text); import labelwise.train.train_pipeline"


@pytest.mark.parametrize("trained", ["cpu"], indirect=True)
def test_packaged_pipelines_share_the_recognizer_and_survive_an_uninstall(trained, tmp_path):
    wheels = []
    for name in ("one", "two"):
        make_package(trained, "cpu", tmp_path / name, PackageName(name, "0.1.0"))
        wheels += (tmp_path / name).glob("*.whl")
    names = ["en_one", "spacy_per_label", "en_two", "spacy_per_label"]
    assert [wheel.name.split("-")[0] for wheel in sorted(wheels)] == names
    assert len({wheel.read_bytes() for wheel in wheels if wheel.name.startswith("spacy_per_label")}) == 1
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    own_points = {"spacy_factories", "spacy_architectures"} & table["entry-points"].keys()
    assert not own_points, "or both would register the component"
    needed = [Requirement(line).name for line in table["dependencies"]]
    python = bare_environment(tmp_path / "venv", "pip", *needed)
    own = build(tmp_path / "source", tmp_path / "wheels")
    install(python, *{wheel.name: wheel for wheel in wheels}.values(), own)
    check(python)
    module = "spacy_per_label.component"
    write_results(tmp_path, make_docs())
    printed = in_bare(python, "-c", USE_BOTH, tmp_path, tmp_path / "report.html")
    assert printed == f"{[module, module]}\n[True, True]\n"
    assert "CPU pipeline" in (tmp_path / "report.html").read_text(encoding="utf8")
    in_bare(python, "-m", "pip", "uninstall", "-y", "-q", "en_one")
    assert in_bare(python, "-c", USE_ONE) == "Ann.\n"


@pytest.mark.long
def test_a_transformer_needs_spacy_transformers_too(english_corpus, tiny_bert, tmp_path, monkeypatch, capsys):
    pytest.importorskip("spacy_transformers")
    use_gpu(-1)
    root = project(tmp_path / "project", english_corpus, "gpu", overrides=with_bert(tiny_bert))
    wheel = make_package(root, "gpu", tmp_path / "dist", PackageName("trf", "0.1.0"))
    assert not [path for path in (tmp_path, tiny_bert) if str(path).encode() in content_of(wheel)]
    python = bare_environment(tmp_path / "venv", "spacy", "spacy-transformers", "pip")
    install(python, *(tmp_path / "dist").glob("*.whl"))
    check(python)
    names = {*re.findall(rb"(?m)^Requires-Dist: ([\w-]+)", content_of(wheel))}
    assert names == {b"spacy", b"spacy-per-label", b"spacy-transformers"}
    assert_same_bits(root, "gpu", python, "en_trf_gpu", monkeypatch, capsys)


@pytest.mark.long
@pytest.mark.parametrize(
    ("extra", "packages"), [("[small]", ["tokenizers"]), ("[int8,small]", ["tokenizers", "ctranslate2"])]
)
def test_a_small_transformer_needs_no_torch(english_corpus, tiny_bert, tmp_path, monkeypatch, capsys, extra, packages):
    overrides = {"training.max_steps": 20, "training.eval_frequency": 20}
    overrides["components.ner.model.tok2vec.name"] = str(tiny_bert)
    overrides["components.ner.model.tok2vec.int8"] = "int8" in extra
    root = project(tmp_path / "project", english_corpus, "small", overrides=overrides)
    wheel = make_package(root, "small", tmp_path / "dist", PackageName("brands", "0.1.0"))
    assert not [path for path in (tmp_path, tiny_bert) if str(path).encode() in content_of(wheel)]
    python = bare_environment(tmp_path / "venv", "spacy", "pip", *packages)
    install(python, *(tmp_path / "dist").glob("*.whl"))
    check(python)
    names = {*re.findall(rb"(?m)^Requires-Dist: ([\w-]+(?:\[[\w,]+\])?)", content_of(wheel))}
    assert names == {b"spacy", b"spacy-per-label" + extra.encode()}
    assert_same_bits(root, "small", python, "en_brands_small", monkeypatch, capsys)


def content_of(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        return b"\n".join(archive.read(name) for name in archive.namelist())


@pytest.fixture
def own(trained, tmp_path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "project", symlinks=True))


def test_the_wheel_has_the_saved_pipeline_and_no_words_texts_paths_or_files_of_the_project(trained, own):
    """spaCy would save words of the vocabulary."""
    model = own / "training/cpu/model-best"
    for name in (".dvc/config", "project.yml", ".git/config", "assets/brat/a.txt", "training/cpu/model-best/.env"):
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text("AKIA2E0A8F3B244C9986")
    edit_model(own, "vocab/strings.json", lambda strings: [*strings, "Wintermute"])
    wheel = make_package(own, "cpu", own / "dist", PackageName("brands", "1.2.0"))
    content = content_of(wheel)
    assert b"PERSON" in content
    for absent in ("AKIA2E0A8F3B244C9986", "Wintermute", str(trained.parent), str(own.parent), SEEN_TEXTS, RECORD):
        assert absent.encode() not in content
    assert "no text that it was trained on, and no word of these texts" in (own / "dist/README.md").read_text()
    loaded = spacy.load(model)
    shutil.rmtree(model)
    loaded.to_disk(model)
    saved = {path.relative_to(model).as_posix() for path in model.rglob("*") if path.is_file()}
    folder = wheel.name.partition("-py3")[0]
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == {
        *(f"en_brands/{folder}/{name}" for name in {*saved, "README.md"}),
        "en_brands/__init__.py",
        "en_brands/meta.json",
    }


def test_what_is_missing_or_does_not_belong_together_is_refused_with_a_remedy(own):
    def refused(message: str) -> None:
        with pytest.raises(InputError, match=message):
            make_package(own, "cpu", own / "dist", PackageName())

    (own / "dist").mkdir()
    (own / "dist/thesis.tex").write_text("years of work")
    refused("isn't a package")
    shutil.rmtree(own / "dist")
    model, file = own / "training/cpu/model-best", own / "metrics/cpu.json"
    metrics = json.loads(file.read_text())
    scores = metrics["all_gold"]
    without = {"labels": {label: own for label, own in scores["labels"].items() if label != "PERSON"}}
    for other, message in (
        ({"all_gold": scores | without}, "no scores of the label 'PERSON'; evaluate cpu again"),
        ({"pipeline_digest": "0"}, "scores are of another pipeline; evaluate cpu again"),
        ({"split_digest": "0"}, "test has changed since cpu was evaluated; evaluate cpu again"),
    ):
        file.write_text(json.dumps(metrics | other))
        refused(message)
    file.write_text(json.dumps(metrics))
    (own / "metrics/merge.json").unlink()
    refused(r"metrics/merge\.json: there are no counts of the merge; run the merge")
    file.unlink()
    refused(r"metrics/cpu\.json: there is no such file; evaluate cpu")
    shutil.rmtree(model)
    refused("no trained pipeline")
    spacy.blank("en").to_disk(model)
    refused("no recognizer named ner, but nothing")


def card_of(labels: dict[str, Scores], merge: Ledger | None = None, raw: RawTexts | None = None, **metrics: Any) -> str:
    nlp = spacy.blank("en")
    ner = nlp.add_pipe("ner")
    for label in labels:
        ner.add_label(label)
    row = AllScores(0.9, 0.8, 0.85, 83, macro=next(iter(labels.values())), labels=labels)
    splits: Any = {split: SplitCounts(2, 2, "") for split in ("train", "test")}
    return write_card(
        nlp,
        {"lang": "en", "name": "a", "version": "1", "description": "", "license": ""},
        Metrics(**{"texts": 9, "all_gold": row, **metrics}),
        merge or Ledger(labels={name: Counter() for name in labels}),
        "0123456789abcdef",
        Manifest(settings={}, labels=[], datasets={}, splits=splits, partitions={}),
        0.8,
        raw,
    )


def test_the_card_of_a_student_says_what_it_learned_from_besides_gold():
    raw = RawTexts("training/small/model-best", "0123456789ab", "", ["A", "B"], 5400, 12, {})
    output = " ".join(card_of({"A": Scores(0.5, 0.5, 0.5, 9)}, raw=raw).split())
    assert "a student of another pipeline (`01234567`)" in output
    assert (
        "annotated 5,400 raw texts of 12 words, whose annotation nobody has checked, for `A`, `B`. The pipe" in output
    )
    assert "student" not in card_of({"A": Scores(0.5, 0.5, 0.5, 9)})


def test_the_card_has_the_scores_of_test_the_counts_of_the_merge_and_which_labels_may_be_used():
    labels = {"A": Scores(0.5, 0.25, 0.3333, 8, f_low=0.2, f_high=0.4567), "B": Scores(0.0, None, None, 0)}
    for name, low in {"GOOD": 0.85, "CLOSE": 0.81, "BAD": 0.6, "RARE": 0.85, "UNSCORED": 0.85}.items():
        labels[name] = Scores(0.9, 0.9, 0.9, 3 if name == "RARE" else 40, f_low=low, f_high=0.99)
    merge = Ledger(
        labels={name: Counter(complete=3) if name == "A" else Counter() for name in labels},
        gold={"train": Counter(A=5), "dev": Counter(), "test": Counter(A=8)},
    )
    lines = card_of(labels, merge, mistakes={"UNSCORED": Mistakes(unscored=99)}).splitlines()
    for line in (
        "| `A` | 0.500 | 0.250 | 0.333 | 0.200 to 0.457 | 8 |",
        "| `UNSCORED` | – | – | – | – | 40 |",
        "| all (micro) | 0.900 | 0.800 | 0.850 | – | 83 |",
        "| mean of the labels (macro) | 0.500 | 0.250 | 0.333 | 0.200 to 0.457 | |",
        "Not in the test set: `B`.",
        "| Label | Complete texts, of 4 | Spans in train | dev | test |",
        "| `A` | 3 | 5 | 0 | 8 |",
        "| `B` | 0 | 0 | 0 | 0 |",
        "- Ready to use, as the lower end of the interval of F1 is 0.8 or more: `GOOD`.",
        "- Borderline, within 0.02 of that: `CLOSE`.",
        "- Not ready: `BAD`.",
        "- Too few test spans to tell: `A`, `RARE`.",
        "- Not scored: `UNSCORED`.",
    ):
        assert line in lines


def test_the_card_has_goals_with_dev_and_test_and_judges_by_them():
    labels = {name: Scores(0.9, 0.9, 0.9, 40, f_low=0.5, f_high=0.99) for name in ("A", "B", "C")}
    goals = {"A": Aimed("recall", 0.9, 0.91, 0.97, 0.95, 0.99), "B": Aimed("precision", 0.95, 0.87, 0.9, 0.8, 0.93)}
    dev = SplitMetrics(9, AllScores(0.9, 0.8, 0.85, 83, macro=labels["A"], labels=labels))
    dev.aimed = {name: Aimed(goal.figure, goal.goal, goal.bound, 0.92) for name, goal in goals.items()}
    lines = card_of(labels, aimed=goals, dev=dev).splitlines()
    for line in (
        "| `A` | recall 0.9 | 0.920 | 0.970 (0.950 to 0.990) |",
        "| `B` | precision 0.95, not reached | 0.920 | 0.900 (0.800 to 0.930) |",
        "- Ready to use, as the lower end of the interval of F1 is 0.8 or more, or that of the goal reaches it: `A`.",
        "- Not ready: `B`, `C`.",
    ):
        assert line in lines, "\n".join(lines)


def test_spacys_meta_has_the_scores_and_the_names_and_equal_pipelines_give_equal_wheels(trained, tmp_path):
    name = PackageName("brands", "1.2.0", "mit", "For <b>tests</b>: 'yes'")
    wheel, again = (make_package(trained, "cpu", tmp_path / str(number), name) for number in (1, 2))
    assert wheel.read_bytes() == again.read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        meta, same = [json.loads(archive.read(name)) for name in archive.namelist() if name.endswith("meta.json")]
    assert meta == same
    metrics = json.loads((trained / "metrics/cpu.json").read_text())["all_gold"]
    assert f"| all (micro) | {metrics['p']:.3f} | {metrics['r']:.3f} |" in (tmp_path / "1/README.md").read_text()
    assert meta["performance"]["ents_f"] == metrics["f"]
    assert meta["performance"]["ents_per_type"] == {
        label: {key: scores.get(key) if scores["support"] or key == "p" else None for key in ("p", "r", "f")}
        for label, scores in metrics["labels"].items()
    }
    assert (meta["license"], meta["description"]) == ("mit", "For <b>tests</b>: 'yes'")


@pytest.mark.guarantee("seen-texts")
@pytest.mark.parametrize(
    ("seen", "on", "message"),
    [
        (Seen(0, 0.5), "On 9 texts that weren't used in training; a span", "has no width).\n"),
        (
            Seen(9, None),
            "On 9 texts; a span",
            "9 of 9 texts were in the pipeline's train or dev set: F1 is 0.850, without them not scored.",
        ),
        (None, "On 9 texts; a span", "width). Unknown whether some of the 9 texts were in the training data"),
    ],
)
def test_the_card_says_whether_the_pipeline_was_trained_on_the_texts(seen, on, message):
    card = card_of({"A": Scores(0.5, 0.5, 0.5, 9)}, seen=seen)
    assert on in card
    assert message in card


@pytest.mark.parametrize(
    ("identity", "message"),
    [
        (("My Brands", "1.0.0"), "name: 'My Brands': write small letters"),
        (("my__brands", "1.0.0"), "name"),
        (("brands", "1.0-beta"), "version: '1.0-beta': write it as pip does"),
        (("brands", "01.0"), "version"),
    ],
)
def test_a_name_that_pip_would_change_is_refused(identity, message):
    with pytest.raises(InputError, match=message):
        PackageName(*identity)
