import re
import sys
import tomllib
import unicodedata
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc

from labelwise.common.errors import InputError
from labelwise.corpus.marks import MARKS
from labelwise.corpus.streaming import forgetting
from labelwise.corpus.tokenizer import PACKAGES, TokenizerRules, make_nlp, read_rules, read_tokenizer
from labelwise.corpus.tokenizing import LearningTokenizer, tokenize
from labelwise.merge.rules import settings
from labelwise.sources.brat import find_documents, read_document
from tests.conftest import ROOT, real_corpus
from tests.merge.test_run import random_datasets

RULES = read_rules(ROOT / "project.yml")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("60degC", "60 deg C"),
        ("10uL", "10 uL"),
        ("~30", "~ 30"),
        ("1.5 mL, 1,000g.", "1.5 mL , 1,000 g ."),
        ("AddingM9", "Adding M 9"),
        ("1xPBS", "1 x PBS"),
        ("(22h).", "( 22 h ) ."),
        ("cells/mL", "cells / mL"),
        ("ddH2O.", "dd H 2 O ."),
        ("pH 8)", "pH 8 )"),
        ("see.Then", "see . Then"),
        # what must stay
        ("don't", "do n't"),
        ("O'Brien's mRNA", "O'Brien 's mRNA"),
        ("Dr. J. Smith paid 3.14159", "Dr. J. Smith paid 3.14159"),
        ("e.g. the U.S.", "e.g. the U.S."),
    ],
)
def test_the_projects_tokenizer(text, tokens):
    nlp = make_nlp("en", RULES)
    assert [token.text for token in nlp.make_doc(text)] == tokens.split()


@pytest.mark.parametrize(
    ("lang", "tokens"),
    [
        ("hi", 'अमरीकी सेना ने 2019 में कहा : " यह ठीक है । "'),
        ("mr", "पुण्यात ( महाराष्ट्र ) मुलांनी क्रिकेट खेळले ."),
        ("ne", "काठमाडौँमा प्रधानमन्त्रीले भने : हामी तयार छौं ।"),
        ("bn", "রবীন্দ্রনাথ ঠাকুর কলকাতায় জন্মগ্রহণ করেন ।"),
        ("gu", "ગાંધીજીનો જન્મ પોરબંદર ( ગુજરાત ) માં થયો હતો ."),
        ("ta", "சென்னையில் மழை பெய்தது , பள்ளிகள் மூடப்பட்டன ."),
        ("te", "హైదరాబాదులో వర్షాలు కురిశాయి , నదులు పొంగాయి ."),
        ("kn", "ಬೆಂಗಳೂರಿನಲ್ಲಿ ಶ್ರೀ ರಾಜ್\u200cಕುಮಾರ್ ವಾಸಿಸುತ್ತಿದ್ದರು ."),
        ("ml", "തിരുവനന്തപുരത്ത് മഴ പെയ്തു , അവന്\u200d വന്നു ."),
        ("si", "ශ්\u200dරී ලංකාවේ අගනුවර කොළඹ වේ ."),
        ("ar", "كَتَبَ الطَّالِبُ الدَّرْسَ ، ثُمَّ نَامَ ."),
        ("he", "בְּרֵאשִׁית בָּרָא אֱלֹהִים , אֵת הַשָּׁמַיִם ."),
        ("ur", "وہ مِرزا غالِبؔ کے شعر پڑھتا ہے ، اور ہنستا ہے ۔"),
        ("fa", "او می\u200cخواهد کتاب\u200cهایش را بخواند ، اما نمی\u200cتواند ."),
        ("fr", unicodedata.normalize("NFD", "L' été , Zoé a mangé à l' hôtel ( très tôt ) .")),
    ],
)
def test_a_mark_or_a_joiner_is_part_of_its_word(lang, tokens):
    """As a reader of each language reads: words are whole, punctuation is off."""
    text = re.sub(r" (?=[.,:)?।،۔])|(?<=[('])[ ]|(?<=: \") | (?=\"$)", "", tokens)
    assert len(text.split()) < len(tokens.split())
    assert [token.text for token in make_nlp(lang, RULES).make_doc(text)] == tokens.split()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("2019में में2019 5किमी किमी5", "2019 में में 2019 5 किमी किमी 5"),
        ("दिल्ली/मुंबई", "दिल्ली / मुंबई"),
        ("(11\u03040)", "( 11\u0304 0 )"),
        ("❤\ufe0flove 1\ufe0f\u20e3x", "❤ \ufe0f love 1 \ufe0f \u20e3 x"),  # parts of an emoji, as ever
    ],
)
def test_digits_and_signs_beside_marks(text, tokens):
    assert [token.text for token in make_nlp("hi", RULES).make_doc(text)] == tokens.split()


def test_marks_are_those_of_unicode():
    """All that this Python knows as marks; the others are of a later Unicode than its own."""
    listed = set(filter(re.compile(f"[{MARKS}]").match, map(chr, range(sys.maxunicode + 1))))
    marks = {char for char in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(char)[0] == "M"}
    assert marks - listed == {"\u20e3", "\ufe0e", "\ufe0f"}
    assert {unicodedata.category(char) for char in listed - marks} <= {"Cn"}


def test_a_pattern_with_marks_is_plain_in_all_files(merging, tmp_path):
    """spaCy, and a pipeline without labelwise, compile it with `re`."""
    merging.add("a", ["A"], [{"text": "सेना ने", "spans": []}], split="train")
    merging.run(lang="hi", tokenizer=RULES)
    lang, rules = read_tokenizer(tmp_path / "corpus/tokenizer.json")
    assert rules.infixes == RULES.infixes
    nlp = make_nlp(lang, rules)
    nlp.to_disk(tmp_path / "saved")
    for file in (tmp_path / "corpus/tokenizer.json", tmp_path / "saved/tokenizer"):
        assert b"p{M}" not in file.read_bytes()
    assert [token.text for token in spacy.load(tmp_path / "saved")("सेना ने")] == ["सेना", "ने"]


def test_without_patterns_it_is_the_languages_own():
    assert [token.text for token in make_nlp("en", TokenizerRules()).make_doc("60degC x g.")] == ["60degC", "x", "g."]


def test_rules_add_to_the_languages_own():
    nlp = make_nlp("en", TokenizerRules(infixes=("(?<=a)(?=b)",)))
    assert [token.text for token in nlp.make_doc("well-known ab")] == ["well", "-", "known", "a", "b"]


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("tokenizer: {infixes: ['(?<=a']}", r"infixes: '\(\?<=a' isn't a regular expression: missing \)"),
        ("tokenizer: {no_exceptions: ['[']}", r"no_exceptions: '\[' isn't a regular expression"),
        (
            "tokenizer: {infix: ['a']}",
            r"project\.yml: tokenizer: infix: .*; its keys are infixes, no_exceptions, block",
        ),
        ("tokenizer: {block: {}}", r"project\.yml: tokenizer: block: \{\}: it names no tokenizer"),
        ("tokenizer: {block: {'@tokenizers': {a: b}}}", r"tokenizer: block: .*Expected `bool \| int \| float \| str"),
        (
            "tokenizer: {block: {'@tokenizers': spacy.zh.ChineseTokenizer, segmenter: pkuseg}}",
            "segmenter pkuseg needs a model, which no corpus has; set jieba, or char",
        ),
        ("tokenizer: {infixes: 'a'}", r"project\.yml: tokenizer: infixes: 'a': Expected `array`, got `str`"),
    ],
)
def test_wrong_rules_say_what_is_wrong(tmp_path, section, message):
    (tmp_path / "project.yml").write_text(section)
    with pytest.raises(InputError, match=message):
        read_rules(tmp_path / "project.yml")


def test_a_project_without_rules_has_none(tmp_path):
    (tmp_path / "project.yml").write_text("vars: {}")
    assert read_rules(tmp_path / "project.yml") == TokenizerRules()


def test_a_language_with_a_tokenizer_of_its_own():
    assert [token.text for token in make_nlp("zh", TokenizerRules()).make_doc("你好")] == ["你", "好"]
    """It has no rules, and skips those of the section by itself."""
    assert [token.text for token in make_nlp("zh", RULES).make_doc("60你好")] == ["6", "0", "你", "好"]


def test_a_block_takes_the_place_of_the_languages_own_and_is_written_beside_the_corpus(merging, tmp_path):
    characters = TokenizerRules(block={"@tokenizers": "spacy.zh.ChineseTokenizer"})
    assert [token.text for token in make_nlp("ko", characters).make_doc("이 사람")] == ["이", "사", "람"]
    merging.add("a", ["A"], [{"text": "이 사람", "spans": []}])
    merging.run(lang="ko", tokenizer=characters)
    lang, rules = read_tokenizer(tmp_path / "corpus/tokenizer.json")
    assert (lang, rules.block) == ("ko", {"@tokenizers": "spacy.zh.ChineseTokenizer", "segmenter": "char"})
    merging.run(lang="zh")
    assert read_tokenizer(tmp_path / "corpus/tokenizer.json")[1].block == rules.block


@pytest.mark.parametrize(
    ("lang", "packages"),
    [("ja", "sudachipy sudachidict_core`"), ("ko", "natto-py`, and MeCab"), ("th", "pythainlp`"), ("vi", "pyvi`")],
)
def test_what_a_language_needs_is_named_with_its_remedy(lang, packages, monkeypatch):
    for module in ("sudachipy", "natto", "pythainlp", "pyvi"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"'{lang}': .*Tokenizer.* can't be used: .* `pip install {packages}"):
        make_nlp(lang, TokenizerRules())


def test_a_block_that_spacy_lacks_is_named():
    with pytest.raises(InputError, match=r"language 'zh': \{'@tokenizers': 'nope'\} can't be used: .*correct it; or,"):
        make_nlp("zh", TokenizerRules(block={"@tokenizers": "nope"}))


def test_the_extras_are_what_the_languages_need():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]["optional-dependencies"]
    for tokenizer, packages in PACKAGES.items():
        extra = tokenizer.split(".")[1] if "." in tokenizer else tokenizer
        assert [re.split("[<>=!]", line)[0] for line in extras[extra]] == list(packages)


def test_a_text_that_a_tokenizer_cannot_take_is_named_with_its_place(merging):
    """Sudachi takes 49,149 bytes; MeCab, as spaCy calls it, makes each white space one space."""
    nlp = make_nlp("zh", TokenizerRules())
    nlp.tokenizer = lambda text: Doc(nlp.vocab, words=text.split())
    nlp.tokenizer.vocab = nlp.vocab
    assert tokenize(nlp, "你 好 ").text == "你 好 "
    with pytest.raises(InputError, match=r"'你\\n好 '\.\.\. of 4 characters: function can't: it would be another"):
        tokenize(nlp, "你\n好 ")
    nlp.tokenizer = lambda text: 1 / 0
    with pytest.raises(InputError, match="can't: division by zero; cut it or leave it out"):
        tokenize(nlp, "你")


def test_a_long_text_is_no_error():
    assert len(make_nlp("en", RULES).make_doc("cat " * 300_000)) == 300_000


def test_an_unknown_language():
    with pytest.raises(InputError, match=r"language 'xq': .* set `lang` to one of"):
        make_nlp("xq", RULES)


def count_lost(folder: Path, rules: TokenizerRules) -> tuple[int, int]:
    """Count the spans of a brat folder that aren't made of whole tokens, and all its spans."""
    nlp = make_nlp("en", rules)
    lost = spans = 0
    for stem in find_documents(folder):
        document = read_document(stem, folder)
        if document.text is not None:
            doc = nlp.make_doc(document.text)
            spans += len(document.mentions)
            lost += sum(doc.char_span(mention.start, mention.end) is None for mention in document.mentions)
    return lost, spans


@pytest.mark.long
def test_few_spans_of_a_real_corpus_are_lost():
    folder = real_corpus("wnut2020_wlp/train")
    lost, spans = count_lost(folder, RULES)
    assert spans == 48197
    assert lost <= 0.005 * spans
    assert count_lost(folder, TokenizerRules())[0] > 0.028 * spans


TEXTS = ["We don't go to the U.K. in May, e.g.  by bus.\n", "(May) don't-go; 60degC", "one word", "", "a\tb \xa0 c"]


@pytest.mark.parametrize("limit", [0, 5, 10_000])
def test_a_tokenizer_that_learns_words_tokenizes_alike(limit):
    plain = make_nlp("en", read_rules(ROOT / "project.yml"))
    learning = LearningTokenizer(make_nlp("en", read_rules(ROOT / "project.yml")))
    learning.nlp.tokenizer.max_cache_size = limit
    for text in TEXTS * 2:
        ours, theirs = learning(text), plain.make_doc(text)
        assert [(t.text, t.whitespace_, t.norm_) for t in ours] == [(t.text, t.whitespace_, t.norm_) for t in theirs]
    assert len(learning.known) <= limit + 20


def test_words_behind_a_special_case_are_remembered(monkeypatch):
    """spaCy's own tokenizer asks its rules again for each word behind one: the reason for ours."""
    asked = []

    def count(nlp):
        find = nlp.tokenizer.prefix_search
        nlp.tokenizer.prefix_search = lambda text: asked.append(text) or find(text)
        return nlp

    text = "don't " + " ".join(f"word{i}" for i in range(50))
    plain, learning = (
        count(make_nlp("en", TokenizerRules())),
        LearningTokenizer(count(make_nlp("en", TokenizerRules()))),
    )
    for make, again in ((plain.make_doc, 50), (learning, 0)):
        make(text)
        asked.clear()
        make(text)
        assert len(asked) >= again
        assert again or not asked


def test_a_large_vocabulary_forgets_what_later_texts_add(monkeypatch):
    monkeypatch.setattr("labelwise.corpus.streaming.MAX_STRINGS", 0)
    tokenizer = LearningTokenizer(make_nlp("en", TokenizerRules()))
    tokenizer.nlp.tokenizer.max_cache_size = 0
    before = len(tokenizer.nlp.vocab.strings)
    for number in range(30):
        with forgetting(tokenizer.nlp):
            assert tokenizer(f"unheard-of{number} words{number}")[-1].text == f"words{number}"
    assert len(tokenizer.nlp.vocab.strings) == before
    monkeypatch.undo()
    with forgetting(tokenizer.nlp):
        tokenizer("another word")
    assert len(tokenizer.nlp.vocab.strings) > before


def test_a_merge_with_a_large_vocabulary_gives_the_same_bytes(merging, monkeypatch):
    random_datasets(merging, 1)
    ledger = merging.run(docs_per_partition=10)
    monkeypatch.setattr("labelwise.corpus.streaming.MAX_STRINGS", 0)
    assert merging.run("forgetful", docs_per_partition=10) == ledger
    assert merging.files() == merging.files("forgetful")


def test_a_tokenizer_that_has_seen_many_words_is_made_anew_and_gives_the_same_bytes(merging, monkeypatch):
    random_datasets(merging, 1)
    ledger = merging.run(docs_per_partition=10)
    made = []
    monkeypatch.setattr(settings, "MAX_WORDS", 20)
    monkeypatch.setattr(settings, "make_nlp", lambda *given: made.append(make_nlp(*given)) or made[-1])
    assert merging.run("anew", docs_per_partition=10) == ledger
    assert len(made) > 2
    assert merging.files() == merging.files("anew")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            {"infixes": ("(?i)mg",)},
            r"infixes: '\(\?i\)mg' can't be used beside the others: its flags would be theirs, too; write",
        ),
        ({"infixes": ("/", "(?P<a>x)", "(?P<a>y)")}, r"infixes: '\(\?P<a>y\)' can't be used .* give groups names"),
        ({"infixes": (r"(x)", r"(\w)(?=\1)")}, r"infixes: .* can't be used .* its own is another; name it: \(\?P<"),
        ({"infixes": (r"(x)", r"(a)?(?(1)b|c)")}, r"infixes: .* can't be used .* its own is another; name it: \(\?P<"),
    ],
)
def test_patterns_that_cannot_be_joined_are_named(rules, message):
    with pytest.raises(InputError, match=message):
        make_nlp("en", TokenizerRules(**rules))


@pytest.mark.parametrize("content", ["[" * 100_000, "[]", "3", "{}", '{"lang": "en", "infixes": 3}', "\xff"])
def test_a_tokenizer_that_is_none_is_named(tmp_path, content):
    (tmp_path / "tokenizer.json").write_text(content, encoding="latin-1")
    with pytest.raises(InputError, match=r"tokenizer\.json: not what a merge writes .*; run the merge again"):
        read_tokenizer(tmp_path / "tokenizer.json")


def test_flags_of_a_part_are_for_that_part():
    nlp = make_nlp("en", TokenizerRules(infixes=("(?i:mg)", "(?P<b>µ)")))
    assert [token.text for token in nlp.make_doc("5MGa 5mga")] == ["5", "MG", "a", "5", "mg", "a"]


def test_a_reference_to_a_group_by_name_is_to_that_group():
    nlp = make_nlp("en", TokenizerRules(infixes=("(µ)", r"(?P<twice>[xy])(?P=twice)")))
    assert [token.text for token in nlp.make_doc("axxb axyb aµb")] == ["a", "xx", "b", "axyb", "a", "µ", "b"]


def test_exceptions_are_dropped_by_each_pattern_on_its_own():
    patterns = (r"(?i)A\.M\.", r"([a-z])\.\1\.", r"(o)\.\1")
    rules = make_nlp("en", TokenizerRules(no_exceptions=patterns)).tokenizer.rules
    assert {"a.m.", "A.M.", "o.o"}.isdisjoint(rules)
    assert {"p.m.", "P.M."} & set(rules)
