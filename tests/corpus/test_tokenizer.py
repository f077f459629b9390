import json
import re
import sys
import unicodedata
from functools import lru_cache

import pytest
from spacy.language import Language
from spacy.tokens import Doc

from labelwise.base.errors import InputError
from labelwise.corpus.tokenizer import LearningTokenizer, TokenizerRules, make_nlp, read_rules, tokenize
from tests.conftest import ROOT

RULES = read_rules(ROOT / "project.yml")
CHARACTERS = TokenizerRules(block={"@tokenizers": "spacy.zh.ChineseTokenizer"})


@lru_cache
def project_nlp(lang: str) -> Language:
    return make_nlp(lang, RULES)


@pytest.mark.parametrize(
    ("lang", "rules", "text", "tokens"),
    [
        ("en", RULES, "60degC 10uL ~30", "60 deg C 10 uL ~ 30"),
        ("en", RULES, "1.5 mL, 1,000g.", "1.5 mL , 1,000 g ."),
        ("en", RULES, "AddingM9 1xPBS ddH2O.", "Adding M 9 1 x PBS dd H 2 O ."),
        ("en", RULES, "(22h). cells/mL pH 8) see.Then", "( 22 h ) . cells / mL pH 8 ) see . Then"),
        # What must stay.
        ("en", RULES, "don't O'Brien's mRNA", "do n't O'Brien 's mRNA"),
        ("en", RULES, "Dr. J. Smith paid 3.14159, e.g. the U.S.", "Dr. J. Smith paid 3.14159 , e.g. the U.S."),
        # A mark or a joiner is a part of its word, but not where it makes an emoji.
        ("hi", RULES, "2019में में2019 5किमी दिल्ली/मुंबई", "2019 में में 2019 5 किमी दिल्ली / मुंबई"),
        ("hi", RULES, "(11\u03040) ❤\ufe0flove 1\ufe0f\u20e3x", "( 11\u0304 0 ) ❤ \ufe0f love 1 \ufe0f \u20e3 x"),
        ("kn", RULES, "ಶ್ರೀ ರಾಜ್\u200cಕುಮಾರ್.", "ಶ್ರೀ ರಾಜ್\u200cಕುಮಾರ್ ."),
        ("ar", RULES, "كَتَبَ الطَّالِبُ الدَّرْسَ، ثُمَّ نَامَ.", "كَتَبَ الطَّالِبُ الدَّرْسَ ، ثُمَّ نَامَ ."),
        ("fa", RULES, "کتاب\u200cهایش را نمی\u200cتواند.", "کتاب\u200cهایش را نمی\u200cتواند ."),
        # Rules add to the language's own, each on its own.
        ("en", TokenizerRules(), "60degC x g.", "60degC x g."),
        ("en", TokenizerRules(infixes=("(?<=a)(?=b)",)), "well-known ab", "well - known a b"),
        ("en", TokenizerRules(infixes=("(?i:mg)", "(?P<b>µ)")), "5MGa 5mga", "5 MG a 5 mg a"),
        ("en", TokenizerRules(infixes=("(µ)", r"(?P<c>[xy])(?P=c)")), "axxb axyb aµb", "a xx b axyb a µ b"),
        # Each pattern drops the exceptions that it matches as a whole.
        (
            *("en", TokenizerRules(no_exceptions=(r"(?i)A\.M\.", r"(v)s\.", r"Ma(s)\1\."))),
            *("5 a.m. vs. Mass. e.g.", "5 a.m . vs . Mass . e.g."),
        ),
        # Tokenizers without rules skip them; a block takes the place of the language's own.
        ("zh", RULES, "60你好", "6 0 你 好"),
        ("ko", CHARACTERS, "이 사람", "이 사 람"),
    ],
)
def test_tokens(lang, rules, text, tokens):
    nlp = project_nlp(lang) if rules is RULES else make_nlp(lang, rules)
    assert [token.text for token in nlp.make_doc(text)] == tokens.split()


def test_marks_are_those_of_this_pythons_unicode():
    pattern = TokenizerRules(infixes=(r"[\p{M}]",)).infixes[0]
    marks = {char for char in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(char)[0] == "M"}
    listed = set(re.findall(pattern, "".join(map(chr, range(sys.maxunicode + 1)))))
    assert marks - listed == {"\u20e3", "\ufe0e", "\ufe0f"}
    assert listed < marks


@pytest.mark.parametrize(
    ("lang", "section", "message"),
    [
        ("en", {"infixes": ["(?<=a"]}, r"infixes: '\(\?<=a' isn't a regular expression: missing \)"),
        ("en", {"no_exceptions": ["["]}, r"no_exceptions: '\[' isn't a regular expression"),
        ("en", {"infix": ["a"]}, r"yml: tokenizer: infix: .*; its keys are infixes, no_exceptions, block"),
        ("en", {"block": {}}, r"tokenizer\.yml: tokenizer: block: \{\}: it names no tokenizer"),
        ("ja", {}, r"'ja': .*Tokenizer.* can't be used: .* `pip install sudachipy sudachidict_core`"),
        ("ko", {}, r"'ko': .*Tokenizer.* can't be used: .* `pip install natto-py`, and MeCab"),
        ("zh", {"block": {"@tokenizers": "nope"}}, r"'zh': \{'@tokenizers': 'nope'\} can't be used: .*correct it; or,"),
        ("xq", {}, r"language 'xq': .* set `lang` to one of"),
        ("en", {"infixes": ["(?i)mg"]}, r"'\(\?i\)mg',\) can't be joined .*: global flags .*; write flags as \(\?i:"),
        ("en", {"infixes": ["(?P<a>x)", "(?P<a>y)"]}, r"can't be joined .*: redefinition of .* give each group a name"),
    ],
)
def test_what_cannot_be_made_is_named_with_its_remedy(tmp_path, lang, section, message, monkeypatch):
    for module in ("sudachipy", "natto"):
        monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/tokenizer.yml").write_text(json.dumps({"tokenizer": section}))
    with pytest.raises(InputError, match=message):
        make_nlp(lang, read_rules(tmp_path / "project.yml"))


def test_a_text_that_a_tokenizer_cannot_take_is_named():
    """Sudachi takes 49,149 bytes; MeCab, as spaCy calls it, collapses white space."""
    nlp = make_nlp("zh", TokenizerRules())
    nlp.tokenizer = lambda text: Doc(nlp.vocab, words=text.split())
    nlp.tokenizer.vocab = nlp.vocab
    assert tokenize(nlp, "你 好 ").text == "你 好 "
    with pytest.raises(InputError, match=r"'你\\n好 '\.\.\. of 4 characters: function failed: it would be another"):
        tokenize(nlp, "你\n好 ")
    nlp.tokenizer = lambda text: 1 / 0
    with pytest.raises(InputError, match="failed: division by zero; cut it or leave it out"):
        tokenize(nlp, "你")


@pytest.mark.parametrize("limit", [0, 5, 10_000])
def test_a_tokenizer_that_learns_words_tokenizes_alike(limit):
    texts = ["We don't go to the U.K. in May, e.g.  by bus.\n", "(May) don't-go; 60degC", "one word", "", "a\tb \xa0 c"]
    texts.append("cat " * 10_000)
    learning = LearningTokenizer(make_nlp("en", RULES))
    learning.nlp.tokenizer.max_cache_size = limit
    for text in texts * 2:
        ours, theirs = learning(text), project_nlp("en").make_doc(text)
        assert [(t.text, t.whitespace_, t.norm_) for t in ours] == [(t.text, t.whitespace_, t.norm_) for t in theirs]
    assert len(learning.known) <= limit + 20
