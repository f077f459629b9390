"""All of spaCy's languages: the corpus has the pipeline's tokens. One without rules runs the whole workflow."""

import importlib
import importlib.util
import pkgutil
from itertools import product

import msgspec
import pytest
import spacy
import spacy.lang

from labelwise.corpus.tokenizer import make_nlp, packages_of, read_rules, read_tokenizer
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.merge.merge_data import merge_data
from labelwise.merge.rules.settings import Settings
from labelwise.report.page import write_report
from labelwise.train.train_pipeline import train_pipeline
from labelwise.train.training_config import TrainingConfig, default_config
from tests.conftest import ROOT, TINY, read_docs, task

RULES = read_rules(ROOT / "project.yml")
SPACYS = sorted(module.name for module in pkgutil.iter_modules(spacy.lang.__path__) if module.ispkg)
# Templates with a place for a name, and names, which aren't in the templates.
TEMPLATES = ["{}今天迟到了。", "我们昨天在医院见到了{}。", "这份报告是{}写的。", "你认识{}吗？"]
NAMES = ["王小明", "李伟", "张丽华", "刘洋", "陈建国", "赵敏"]


def make_task(template: str, name: str) -> dict:
    before, after = template.split("{}")
    other = NAMES[NAMES.index(name) - 1]
    text = f"{before}{name}{after}{other}来了。"
    at = [len(before), len(before) + len(name) + len(after)]
    spans = ((start, start + len(who)) for start, who in zip(at, (name, other), strict=True))
    return task(text, *spans, label="PERSON", answer="accept")


def need_packages(lang: str) -> None:
    block = spacy.util.get_lang_class(lang).default_config["nlp"]["tokenizer"]
    for name in packages_of(block):
        pytest.importorskip({"natto-py": "natto"}.get(name, name), reason=f"{lang} needs {name}")


@pytest.mark.guarantee("tokenizer")
@pytest.mark.nightly
@pytest.mark.parametrize("lang", SPACYS)
def test_each_language_is_merged_saved_and_loaded_with_the_same_tokens(lang, merging, tmp_path):
    need_packages(lang)
    if importlib.util.find_spec(f"spacy.lang.{lang}.examples") is None:
        pytest.skip(f"spaCy has no sentences in {lang}")
    texts = [*importlib.import_module(f"spacy.lang.{lang}.examples").sentences[:2], "  1.\n\n 2 "]
    merging.add("a", ["A"], [{"text": text, "spans": []} for text in texts], split="train")
    merging.run(lang=lang, tokenizer=RULES)
    nlp = make_nlp(*read_tokenizer(tmp_path / "corpus" / "tokenizer.json"))
    nlp.to_disk(tmp_path / "saved")
    for pipeline in (nlp, spacy.load(tmp_path / "saved")):
        docs = list(read_docs(tmp_path / "corpus" / "train", pipeline))
        assert {doc.text for doc in docs} == set(texts)
        for doc in docs:
            loaded = pipeline(doc.text)
            assert [(token.text, token.whitespace_) for token in loaded] == [(t.text, t.whitespace_) for t in doc]


@pytest.mark.guarantee("tokenizer")
def test_a_language_without_rules_goes_from_tasks_to_a_report(merging):
    merging.add("person", ["PERSON"], [make_task(*made) for made in product(TEMPLATES, NAMES)])
    root = merging.root
    settings = Settings(lang="zh", tokenizer=RULES, dev_ratio=0.2, test_ratio=0.2)
    declared = str(root / "tasks/datasets.yml")  # paths may be strings
    (root / "decisions").mkdir()
    made = {"decisions": str(root / "decisions"), "metrics": str(root / "metrics/merge.json")}
    merge_data([declared], str(root / "corpus"), settings, **made)
    steps = {"training.max_steps": 60, "training.eval_frequency": 60, "training.optimizer.learn_rate": 0.01}
    recipe = TrainingConfig(str(default_config("cpu")), str(root / "corpus"), overrides=TINY | steps)
    model = str(root / "training/cpu/model-best")
    train_pipeline(recipe, model, str(root / "plots/cpu.tsv"), resources=str(root / "training/cpu/resources.tsv"))
    evaluation = evaluate_pipeline(model, str(root / "corpus/test"), tables=str(root / "training/cpu"))
    (root / "metrics/cpu.json").write_bytes(msgspec.json.encode(evaluation.metrics))
    write_report(str(root), "cpu", str(root / "cpu.html"))
    assert evaluation.metrics.all_gold.f > 0.8
    assert f"{evaluation.metrics.all_gold.f:.3f}" in (root / "cpu.html").read_text(encoding="utf8")
