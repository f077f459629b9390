"""spaCy's own commands take corpus, configs and saved pipelines, as docs/python.md says."""

from pathlib import Path

import pytest
import spacy
from spacy.cli.debug_config import debug_config
from spacy.cli.debug_data import debug_data
from spacy.tokens import DocBin

from labelwise.corpus.tokenizer import read_rules
from labelwise.merge.rules.settings import Settings
from tests.conftest import ROOT, TINY, merge_demo, run_python
from tests.train.training import CPU, train_in

CODE = ["--code", "labelwise/train/registry.py"]
LABELS = ["COMPANY", "PERSON", "PLACE"]
STEPS = {**TINY, "training.max_steps": 60, "training.eval_frequency": 60, "training.optimizer.learn_rate": 0.005}
FEW = ["--training.max_steps", "4", "--training.eval_frequency", "2"]
PREDICTED = "Ms Ann Lee of Lundberg Ltd met Mr John Smith in Paris, at 60degC."


def run(*command: object) -> str:
    return run_python("-m", "spacy", *command, NO_COLOR="1", ANSI_COLORS_DISABLED="1")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """More than a hundred texts: `debug data` counts fewer as an error."""
    settings = Settings(tokenizer=read_rules(ROOT / "project.yml"))
    return merge_demo(tmp_path_factory.mktemp("demo"), settings, docs=160, labels=3, words=30)


@pytest.fixture(scope="module", params=["cpu", "ner"])
def model(request, corpus, tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp(request.param)
    train_in(root, corpus, STEPS, ROOT / f"configs/{request.param}.cfg")
    return root / "model"


@pytest.mark.parametrize("name", ["cpu", "small", "gpu", "ner"])
def test_debug_config_and_debug_data_pass_on_each_config(corpus, name, request, capsys):
    config, changed = ROOT / f"configs/{name}.cfg", {"paths.corpus": str(corpus)}
    if name in ("small", "gpu"):
        changed["components.ner.model.tok2vec.name"] = str(request.getfixturevalue("tiny_bert"))
    debug_config(config, overrides=changed)
    debug_data(config, config_overrides=changed, silent=False)
    printed = capsys.readouterr().out
    assert "Config is valid" in printed
    assert f"{7 if name == 'ner' else 3} checks passed" in printed  # spaCy has four more for its own recognizer


@pytest.mark.parametrize("model", ["cpu"], indirect=True)
@pytest.mark.long
def test_train_and_debug_data_take_the_corpus_the_config_and_that_of_a_saved_pipeline(corpus, model, tmp_path):
    printed = run("debug", "data", model / "config.cfg", *CODE)
    assert "Corpus is loadable" in printed
    assert "No overlap between training and evaluation data" in printed
    for split, title in (("train", "training docs"), ("dev", "evaluation docs")):
        texts = sum(len(DocBin().from_disk(file)) for file in (corpus / split).glob("*.spacy"))
        assert f"{texts} {title}" in printed
    kinds = []
    for name, config in (("own", CPU), ("saved", model / "config.cfg")):
        curve, out = tmp_path / f"{name}.tsv", tmp_path / name
        run("train", config, *CODE, "--paths.corpus", corpus, "--paths.curve", curve, "--output", out, *FEW)
        nlp = spacy.load(out / "model-best")
        kinds.append(type(nlp.get_pipe("ner")))
        assert sorted(nlp.get_pipe("ner").labels) == LABELS
        assert [token.text for token in nlp(PREDICTED)][-4:] == ["60", "deg", "C", "."]
        assert len(curve.read_text().splitlines()) == 1 + 3
    assert kinds[0] is kinds[1] is type(spacy.load(model).get_pipe("ner"))
