"""Training and evaluation for real, on a tiny corpus; and the trained model where labelwise isn't installed."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
import typer
from spacy.util import load_config
from typer.testing import CliRunner

from labelwise.corpus.tokenizer import make_nlp, read_rules
from labelwise.errors import InputError
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.files import locked
from labelwise.text import text_key
from labelwise.train import run
from labelwise.train.config import read_config
from labelwise.train.reader import PartitionedCorpus, read_docs
from labelwise.train.recipe import Recipe
from labelwise.train.registry import make_corpus_tokenizer
from labelwise.train.run import train_pipeline
from scripts import train as train_script
from tests.bare import bare_environment
from tests.conftest import ROOT, another_process

CPU, GPU = ROOT / "configs" / "cpu.cfg", ROOT / "configs" / "gpu.cfg"
TEXT = "Heat 5 mL to 60degC, said Zoë Barton of Mercury Labs on 3 May 1999."


@pytest.fixture(scope="module")
def trained(demo_corpus, tmp_path_factory) -> Path:
    """A folder with a pipeline trained for a few steps, `model`, and its curve, `curve.tsv`."""
    folder = tmp_path_factory.mktemp("cpu")
    overrides = {"training.max_steps": 30, "training.eval_frequency": 10}
    train_pipeline(Recipe(CPU, demo_corpus, overrides=overrides), folder / "model", folder / "curve.tsv")
    return folder


def test_training_gives_a_pipeline_and_a_curve(trained):
    assert sorted(path.name for path in trained.iterdir()) == ["curve.tsv", "model"]
    header, *rows = [line.split("\t") for line in (trained / "curve.tsv").read_text().splitlines()]
    expected = ["step", "epoch", "words", "loss_tok2vec", "loss_ner", "score", "ents_f", "ents_macro_f", "ents_p"]
    assert header[:9] == expected
    assert [row[0] for row in rows] == ["10", "20", "30"]
    assert float(rows[-1][4]) < float(rows[0][4])


def test_training_again_gives_the_same_curve_and_scores(trained, demo_corpus, tmp_path):
    overrides = {"training.max_steps": 30, "training.eval_frequency": 10}
    train_pipeline(Recipe(CPU, demo_corpus, overrides=overrides), tmp_path / "model", tmp_path / "curve.tsv")
    assert (tmp_path / "curve.tsv").read_bytes() == (trained / "curve.tsv").read_bytes()
    one, other = (evaluate_pipeline(folder / "model", demo_corpus / "test")[0] for folder in (trained, tmp_path))
    one.pipeline_digest = other.pipeline_digest  # the config names the curve's file
    assert one == other
    assert one.texts == json.loads((demo_corpus / "manifest.json").read_text())["splits"]["test"]["texts"]


@pytest.mark.parametrize(("steps", "warned"), [(2, True), (3, False), (0, False)])
def test_fewer_steps_than_the_warm_up_are_warned_of(demo_corpus, tmp_path, monkeypatch, steps, warned):
    """Before the first step, which isn't taken here."""
    schedule = {"@schedules": "warmup_linear.v1", "warmup_steps": 3, "total_steps": 4, "initial_rate": 0.001}
    overrides = {"training.max_steps": steps, "training.optimizer.learn_rate": schedule}
    monkeypatch.setattr(run, "_make_loop", lambda *given, **options: 1 / 0)
    recipe, told = Recipe(CPU, demo_corpus, overrides=overrides), []
    with pytest.raises(ZeroDivisionError):
        train_pipeline(recipe, tmp_path / "model", tmp_path / "curve.tsv", tell=told.append)
    assert [re.findall(r"\d+|warmup_steps", one) for one in told if "warm" in one] == (
        [["2", "3", "3", "warmup_steps"]] if warned else []
    )


def test_a_training_on_a_gpu_says_so_before_its_first_step(demo_corpus, tmp_path, monkeypatch):
    """The GPU is pretended; minutes may pass before the first scores."""
    monkeypatch.setattr(run, "use_gpu", lambda gpu_id: None)
    for module in ("checkpoint", "run"):
        monkeypatch.setattr(f"labelwise.train.{module}.device_name", lambda gpu_id: f"Tesla number {gpu_id}")
    told = []

    def lead(*given, **options):
        assert told == ["Training on Tesla number 0; scores come every 100 steps, and after the last one"]
        raise ZeroDivisionError

    monkeypatch.setattr(run, "_make_loop", lead)
    with pytest.raises(ZeroDivisionError):
        train_pipeline(Recipe(CPU, demo_corpus, gpu_id=0), tmp_path / "model", tmp_path / "c.tsv", tell=told.append)


def test_no_time_left_is_told_before_there_is_a_basis(trained, demo_corpus, tmp_path, capsys):
    """A pipeline that starts from another one is evaluated after its first step."""
    overrides = {"training.max_steps": 4, "training.eval_frequency": 2}
    model = str(trained / "model")
    recipe = Recipe(CPU, demo_corpus, overrides=overrides, init_from=model)
    train_pipeline(recipe, tmp_path / "model", tmp_path / "curve.tsv", resources=tmp_path / "resources.tsv")
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    (start,) = (place for place, row in enumerate(rows) if row[-1:] == ["LEFT"])
    assert [(row[1], ":" in row[-1]) for row in rows[start + 2 : start + 5]] == [("0", False), ("2", True), ("4", True)]
    header, *rows = [line.split("\t") for line in (tmp_path / "resources.tsv").read_text().splitlines()]
    assert header == ["seconds", "step", "words_per_second", "memory_mb", "waiting_percent"]
    assert [row[1] for row in rows] == ["0", "2", "4"]
    assert all(int(row[2]) > 100 and int(row[3]) > 100 for row in rows)


def test_pretrained_weights_that_spacy_would_leave_out_are_an_error(demo_corpus, tmp_path):
    """Without [pretraining], spaCy ignores init_tok2vec."""
    overrides = {"training.max_steps": 1, "paths.init_tok2vec": str(tmp_path / "model9.bin")}
    with pytest.raises(InputError, match=r"init_tok2vec is set, but \[pretraining\] is empty"):
        train_pipeline(Recipe(CPU, demo_corpus, overrides=overrides), tmp_path / "model", tmp_path / "curve.tsv")


def test_all_labels_are_known_whichever_texts_come_first(trained, demo_corpus):
    nlp = spacy.load(trained / "model")
    assert sorted(nlp.get_pipe("ner").labels) == sorted(
        json.loads((demo_corpus / "manifest.json").read_text())["labels"]
    )


def test_the_pipeline_says_how_it_was_trained(trained):
    """So that whatever evaluates it knows whether that is to be portable."""
    assert load_config(trained / "model" / "config.cfg")["labelwise"] == {"portable": False, "sub_batch": 0}


def test_the_pipeline_has_the_tokenizer_of_the_merge(trained, demo_corpus):
    nlp = spacy.load(trained / "model")
    expected = make_nlp("en", read_rules(ROOT / "project.yml"))
    assert [token.text for token in nlp.make_doc(TEXT)] == [token.text for token in expected.make_doc(TEXT)]
    assert "60degC" not in [token.text for token in nlp.make_doc(TEXT)]
    for split in ("train", "dev", "test"):
        for doc in read_docs(demo_corpus / split, nlp):
            assert [token.text for token in nlp.make_doc(doc.text)] == [token.text for token in doc]


def test_the_pipeline_loads_with_spacy_alone(trained, tmp_path):
    """In an environment that has spaCy, what spaCy requires, and the recognizer's package, which needs nothing else."""
    shutil.copytree(ROOT / "spacy_per_label", tmp_path / "spacy_per_label")
    python = bare_environment(tmp_path / "bare", "spacy")
    code = (
        "import importlib.util as u, json, sys, spacy, spacy_per_label\n"
        "absent = [name for name in ('labelwise', 'dvc', 'torch', 'spacy_transformers') if not u.find_spec(name)]\n"
        "nlp = spacy.load(sys.argv[1])\n"
        "doc = nlp(sys.argv[2])\n"
        "print(json.dumps([absent, [t.text for t in doc], [[e.text, e.label_] for e in doc.ents]]))\n"
    )
    command = [python, "-c", code, trained / "model", TEXT]
    done = subprocess.run(command, cwd=tmp_path, env={"LANG": "C.UTF-8"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    absent, tokens, entities = json.loads(done.stdout)
    assert absent == ["labelwise", "dvc", "torch", "spacy_transformers"]
    here = spacy.load(trained / "model")(TEXT)
    assert tokens == [token.text for token in here]
    assert entities == [[ent.text, ent.label_] for ent in here.ents]


def test_evaluation_counts_what_the_merge_lost(trained, merging):
    """One span is inside a token, one inside another span; both are gold that the model can't have."""
    text = "Smithers of Mercury Labs came."
    spans = [(0, 5, "PERSON"), (12, 24, "COMPANY"), (12, 19, "COMPANY")]
    task = {"text": text, "spans": [{"start": start, "end": end, "label": label} for start, end, label in spans]}
    merging.add("gold", ["PERSON", "COMPANY"], [task], split="test")
    merging.run()
    scores, *_ = evaluate_pipeline(trained / "model", merging.root / "corpus" / "test")
    assert (scores.texts, scores.all_gold.support) == (1, 3)
    assert scores.all_gold.labels["PERSON"].support == 1


def test_stopped_training_leaves_the_old_pipeline(trained, demo_corpus, tmp_path, monkeypatch):
    def stop(self, *given):
        (self.output / "model-best").mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr("labelwise.train.loop.Loop.run", stop)
    (tmp_path / "model").mkdir()
    for name in ("meta.json", "config.cfg", "old"):
        (tmp_path / "model" / name).touch()
    with pytest.raises(KeyboardInterrupt):
        train_pipeline(Recipe(CPU, demo_corpus), tmp_path / "model", tmp_path / "curve.tsv")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model" / "old").exists()


@pytest.mark.parametrize("mine", ["predictions.jsonl", "model-best/meta.json", "meta.json", "config.cfg", ""])
def test_only_a_pipeline_is_replaced(demo_corpus, tmp_path, mine, monkeypatch):
    monkeypatch.setattr(run, "make_pipeline", lambda *given, **options: pytest.fail("it was begun"))
    path = tmp_path / "cpu" / mine
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    with pytest.raises(InputError, match=r"cpu would be replaced, and isn't an earlier pipeline, as it has no"):
        train_pipeline(Recipe(CPU, demo_corpus), tmp_path / "cpu", tmp_path / "curve.tsv")
    assert path.read_text() == "mine"


def test_another_training_to_the_same_folder_is_refused_at_once(demo_corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "make_pipeline", lambda *given, **options: pytest.fail("it was begun"))
    with (
        another_process(locked(tmp_path / "model")),
        pytest.raises(InputError, match=r"model: another process is writing this; wait until it ends"),
    ):
        train_pipeline(Recipe(CPU, demo_corpus), tmp_path / "model", tmp_path / "curve.tsv")


@pytest.mark.parametrize("config", [CPU, GPU], ids=["cpu", "gpu"])
def test_configs_stream_and_begin_with_their_command(config):
    assert config.read_text().startswith(f"# python -m spacy init config configs/{config.name} ")
    loaded = load_config(config)
    assert loaded["training"]["max_epochs"] == -1
    assert loaded["corpora"]["train"]["@readers"] == "labelwise.PartitionedCorpus.v1"
    assert loaded["initialize"]["before_init"]["@callbacks"] == "labelwise.corpus_tokenizer.v1"
    assert loaded["training"]["logger"]["@loggers"] == "labelwise.Logger.v1"


@pytest.mark.parametrize(
    ("registry", "name"),
    [
        ("readers", "labelwise.PartitionedCorpus.v1"),
        ("callbacks", "labelwise.corpus_tokenizer.v1"),
        ("loggers", "labelwise.Logger.v1"),
        ("factories", "per_label"),
        ("architectures", "spacy-per-label.Heads.v1"),
        ("architectures", "spacy-per-label.Transformer.v1"),
    ],
)
def test_registered_names(registry, name):
    assert getattr(spacy.registry, registry).get(name)


@pytest.mark.skipif("CUDA_VISIBLE_DEVICES" not in os.environ and Path("/dev/nvidia0").exists(), reason="has a GPU")
def test_without_a_gpu_training_for_one_stops_at_once(demo_corpus, tmp_path):
    command = [sys.executable, "-m", "scripts.train", GPU, demo_corpus, tmp_path / "m", "--curve", tmp_path / "c.tsv"]
    done = subprocess.run([*command, "--gpu-id", "0"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "GPU 0 can't be used" in done.stdout
    assert "--gpu-id -1" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_corpus_without_manifest_is_not_trained_on(demo_corpus, tmp_path):
    with pytest.raises(InputError, match=r"manifest\.json: there is no such file; run the merge to completion"):
        train_pipeline(Recipe(CPU, tmp_path), tmp_path / "model", tmp_path / "curve.tsv")


def test_a_config_with_another_kind_of_tokenizer_is_refused(demo_corpus, tmp_path):
    block = '[nlp.tokenizer]\n@tokenizers = "spacy.zh.ChineseTokenizer"\n\n[nlp.vectors]'
    (tmp_path / "own.cfg").write_text(CPU.read_text().replace("[nlp.vectors]", block))
    wrong = r"own\.cfg: \[nlp.tokenizer\] is .*ChineseTokenizer.*merged with .*spacy\.Tokenizer\.v1.* delete that block"
    with pytest.raises(InputError, match=wrong):
        read_config(Recipe(tmp_path / "own.cfg", demo_corpus))
    block = block.replace("zh.ChineseTokenizer", "Tokenizer.v1")
    (tmp_path / "own.cfg").write_text(CPU.read_text().replace("[nlp.vectors]", block))
    assert read_config(Recipe(tmp_path / "own.cfg", demo_corpus)) == read_config(Recipe(CPU, demo_corpus))


def test_a_pipeline_of_another_language_is_refused(demo_corpus):
    with pytest.raises(InputError, match=r"the corpus is 'en', the pipeline 'de'; set nlp\.lang"):
        make_corpus_tokenizer(str(demo_corpus / "tokenizer.json"))(spacy.blank("de"))


@pytest.mark.parametrize(
    ("cli", "arguments", "message"),
    [
        (train_script.train_cli, [str(CPU), "nowhere", "m", "--curve", "c.tsv"], "there is no such file"),
        (train_script.train_cli, [str(CPU), "c", "m", "--curve", "c.tsv", "--max-steps", "-5"], "--max-steps -5: give"),
        (train_script.train_cli, [str(CPU), "c", "m", "--curve", "c.tsv", "--limit", "-1"], "--limit -1: give"),
    ],
)
def test_command_lines_fail_with_a_remedy(cli, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    app.command()(cli)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert message in " ".join(result.output.split())
    assert list(tmp_path.iterdir()) == []


def test_a_limit_is_of_train_alone_and_takes_the_texts_with_the_lowest_keys(demo_corpus, tmp_path):
    """So a larger one has all of a smaller one."""
    overrides = {"training.max_steps": 2, "training.eval_frequency": 2, "training.max_epochs": 1}
    recipe = Recipe(CPU, demo_corpus, limit=3, overrides={**overrides, "training.batcher.size": 100})
    trained = train_pipeline(recipe, tmp_path / "model", tmp_path / "c.tsv")
    assert trained.texts["texts"] == 3
    config = spacy.load(tmp_path / "model").config["corpora"]
    assert (config["train"]["limit"], config["dev"]["limit"]) == (3, 0)
    read = [eg.reference.text for eg in PartitionedCorpus(demo_corpus / "train", limit=3)(spacy.blank("en"))]
    every = [doc.text for doc in read_docs(demo_corpus / "train", spacy.blank("en"))]
    assert read == sorted(every, key=lambda text: text_key(text.encode("utf8")))[:3]
