"""Anyone's language: a corpus has its pipeline's tokens in all of spaCy's, and each kind goes the whole way."""

import importlib
import importlib.util
import pkgutil
import re
import zipfile
from itertools import product

import msgspec
import pytest
import spacy
import spacy.lang

from labelwise.corpus.tokenizer import make_nlp, packages_of, read_rules, read_tokenizer
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.report.page import write_report
from labelwise.train.reader import read_docs
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import ROOT, write_jsonl
from tests.test_end_to_end import Copy

RULES = read_rules(ROOT / "project.yml")
SPACYS = sorted(module.name for module in pkgutil.iter_modules(spacy.lang.__path__) if module.ispkg)
# Templates with a place for a name, and names, none of which is in a template.
MADE: dict[str, tuple[list[str], list[str]]] = {
    "es": (
        ["{} llegó tarde.", "La paciente vio a {} ayer.", "El informe de {} está listo.", "¿Quién llamó a {}?"],
        ["Ana Núñez", "José Muñoz", "Lucía Peña", "Íñigo Ibáñez", "Begoña Güell", "Raúl Ordóñez"],
    ),
    "hi": (
        ["आज {} देर से पहुँचे।", "कल हम दिल्ली में {} से मिले थे।", "यह रिपोर्ट {} ने लिखी है।", "क्या आप {} को जानते हैं?"],
        ["राम प्रसाद", "सुनीता देवी", "अमित कुमार", "प्रीति शर्मा", "विजय मिश्रा", "गीता सिंह"],
    ),
    "zh": (
        ["{}今天迟到了。", "我们昨天在医院见到了{}。", "这份报告是{}写的。", "你认识{}吗？"],
        ["王小明", "李伟", "张丽华", "刘洋", "陈建国", "赵敏"],
    ),
    "th": (
        ["{} มาสายวันนี้", "เมื่อวานเราพบ {} ที่โรงพยาบาล", "รายงานนี้เขียนโดย {} เอง", "คุณรู้จัก {} ไหม"],
        ["สมชาย ใจดี", "สมหญิง รักไทย", "วิชัย สุขใจ", "มาลี ศรีสุข", "ประเสริฐ ทองดี", "กมล แก้วใส"],
    ),
}


def make_tasks(lang: str) -> list[dict]:
    """Tasks of one label, PERSON: each two templates, with each name."""
    templates, names = MADE[lang]
    gap = "" if lang in ("zh", "ja") else " "
    tasks = []
    for (number, first), second, name in product(enumerate(templates), templates, names):
        other = names[(names.index(name) + number + 1) % len(names)]
        before, after = first.split("{}")
        text = f"{before}{name}{after}{gap}"
        one, two = len(before), len(text) + second.index("{}")
        spans = [{"start": at, "end": at + len(who), "label": "PERSON"} for at, who in ((one, name), (two, other))]
        tasks.append({"text": text + second.format(other), "spans": spans, "answer": "accept"})
    return tasks


def need_packages(lang: str) -> None:
    """Skip a language whose tokenizer needs what isn't installed."""
    block = spacy.util.get_lang_class(lang).default_config["nlp"]["tokenizer"]
    for name in packages_of(block):
        pytest.importorskip({"natto-py": "natto"}.get(name, name), reason=f"{lang} needs {name}")


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
            made = pipeline(doc.text)
            assert [(token.text, token.whitespace_) for token in made] == [(t.text, t.whitespace_) for t in doc]


def test_a_language_without_rules_goes_from_tasks_to_a_report(merging):
    merging.add("person", ["PERSON"], make_tasks("zh"))
    root = merging.root
    settings = Settings(lang="zh", tokenizer=RULES, dev_ratio=0.2, test_ratio=0.2)
    merge_data([root / "tasks/datasets.yml"], root / "corpus", settings, metrics=root / "metrics/merge.json")
    overrides = {"training.max_steps": 60, "training.eval_frequency": 60, "training.optimizer.learn_rate": 0.01}
    model = root / "training/cpu/model-best"
    train_pipeline(
        Recipe(ROOT / "configs/cpu.cfg", root / "corpus", overrides=overrides), model, root / "plots/cpu.tsv"
    )
    found = evaluate_pipeline(model, root / "corpus/test", tables=root / "training/cpu")
    (root / "metrics/cpu.json").write_bytes(msgspec.json.encode(found.metrics))
    write_report(root, "cpu", root / "cpu.html")
    assert found.metrics.all_gold.f > 0.8
    assert f"{found.metrics.all_gold.f:.3f}" in (root / "cpu.html").read_text(encoding="utf8")


@pytest.mark.nightly
@pytest.mark.parametrize("lang", MADE)
def test_the_whole_way_in_a_language(lang, tmp_path):
    """From files to report and wheel, with nothing set but `lang`: an easy label is found."""
    need_packages(lang)
    copy = Copy(tmp_path / "project")
    copy.set("lang", lang)
    copy.set("cpu_steps", "150")
    write_jsonl(copy.root / "assets/prodigy/person.jsonl", make_tasks(lang))
    printed = copy.run("weasel", "run", "all")
    f = float(re.search(r"(?m)F (0\.\d+|1\.0+)", printed.rpartition("Points of F")[2])[1])
    assert f > 0.9
    copy.run("weasel", "run", "package")
    (wheel,) = (copy.root / "dist").glob("*.whl")
    assert wheel.name.startswith(f"{lang}_ner-")
    with zipfile.ZipFile(wheel) as file:
        needed = next(file.read(name) for name in file.namelist() if name.endswith("METADATA")).decode()
    _, rules = read_tokenizer(copy.root / "corpus/tokenizer.json")
    assert all(f"Requires-Dist: {name}==" in needed for name in packages_of(rules.block))
