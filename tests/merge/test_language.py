"""Texts that look like another language than their own, told by spaCy's own example sentences."""

import pytest
import spacy

from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.tokenizer import TokenizerRules, make_nlp
from labelwise.merge.language import doubts_about_language, looks_like, stop_words, tokens_per_word
from tests.conftest import real_corpus, write_docs
from tests.languages import sentences
from tests.test_languages import SPACYS

# What is said of texts that spaCy's lists can't tell, or tell wrongly, instead of their language.
SCRIPTS = {"am": "ETHIOPIC", "ky": "CYRILLIC", "sa": "DEVANAGARI", "ti": "ETHIOPIC"}
TAKEN_FOR = {"dsb": "pl", "mk": "bg", "ms": "id"}
NOTHING = ("az", "et", "gd", "hsb", "is", "la", "lg", "lt", "lv", "tr")


def stored(path, texts, made_by="xx"):
    """Texts, tokenized by a language that may be another."""
    nlp = spacy.blank(made_by)
    write_docs(map(nlp.make_doc, texts), path / "part.spacy")
    return list(read_stored_docs(path / "part.spacy"))


@pytest.mark.parametrize("lang", [lang for lang in SPACYS if lang != "xx"])
def test_texts_look_like_their_own_language(lang, tmp_path):
    assert looks_like(stored(tmp_path, sentences(lang) * 5), lang) == ""


@pytest.mark.parametrize("lang", [lang for lang in SPACYS if lang in stop_words() and lang != "en"])
def test_texts_that_are_declared_as_english_look_like_what_they_are(lang, tmp_path):
    found = looks_like(stored(tmp_path, sentences(lang) * 5, "en"), "en")
    said = f"`lang: {TAKEN_FOR.get(lang, lang)}`"
    if lang in SCRIPTS:
        said = f"a language that is written in {SCRIPTS[lang]} letters"
    assert found == ("" if lang in NOTHING else said)


@pytest.mark.parametrize("lang", ["es", "de", "ru", "ar", "ja", "zh"])
def test_english_texts_look_english(lang, tmp_path):
    assert looks_like(stored(tmp_path, sentences("en") * 5), lang) == "`lang: en`"


def test_a_few_letters_say_nothing(tmp_path):
    assert looks_like(stored(tmp_path, ["Эй!"] * 9), "en") == ""


def test_the_merge_tells_what_to_set(merging):
    merging.add("a", ["A"], [{"text": text, "spans": []} for text in sentences("es")], split="train")
    merging.run()
    ((what, remedy),) = doubts_about_language(merging.root / "corpus", spacy.blank("en"))
    assert what == "The texts don't look like `lang: en`, but like `lang: es`."
    assert remedy == "Set `lang`, in project.yml."
    assert list(doubts_about_language(merging.root / "corpus", spacy.blank("es"))) == []


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("one two", 1),
        ("one, two; (three)  x", 2),
        ("བོད་ཀྱི་སྐད་ཡིག", 0),
        ("ភាសា\u200bខ្មែរ\u200bគឺជា", 0),
        ("ພາສາລາວ, ມື້ນີ້", 0),
        ("ဆရာ၊ကျောင်း။", 0),
        ("日本語、中国語。", 0),
    ],
)
def test_tokens_of_a_word_between_white_space(text, tokens, tmp_path):
    """Scripts that put no spaces between words have none."""
    assert tokens_per_word(stored(tmp_path, [text] * 30)) == tokens


def test_few_words_say_nothing_of_the_tokenizer(tmp_path):
    assert tokens_per_word(stored(tmp_path, ["a,b,c"] * 29)) == 0
    assert tokens_per_word(stored(tmp_path, ["a,b,c"] * 30)) == 5


def test_a_tokenizer_without_rules_has_no_infixes_to_change(merging):
    merging.add("a", ["A"], [{"text": f"{n} 이 사람 우리 나라 사람들", "spans": []} for n in range(30)], split="train")
    characters = TokenizerRules(block={"@tokenizers": "spacy.zh.ChineseTokenizer"})
    merging.run(lang="ko", tokenizer=characters)
    assert list(doubts_about_language(merging.root / "corpus", make_nlp("ko", characters))) == []


@pytest.mark.long
@pytest.mark.parametrize("name", ["litbank", "wnut2020_wlp/train", "materials_syntheses"])
def test_no_public_corpus_looks_like_another_language(name, tmp_path):
    files = sorted(real_corpus(name).rglob("*.txt"))[:100]
    assert looks_like(stored(tmp_path, [file.read_text(encoding="utf8")[:5000] for file in files]), "en") == ""
