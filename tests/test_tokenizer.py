import pytest
import yaml

from labelwise.errors import InputError
from labelwise.tokenizer import make_nlp
from tests.test_project import ROOT

VARS = yaml.safe_load((ROOT / "project.yml").read_text(encoding="utf8"))["vars"]


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
    nlp = make_nlp(VARS["lang"], VARS["infixes"], VARS["no_exceptions"])
    assert [token.text for token in nlp.make_doc(text)] == tokens.split()


def test_without_patterns_it_is_the_languages_own():
    assert [token.text for token in make_nlp("en").make_doc("60degC x g.")] == ["60degC", "x", "g."]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("en", "(?<=a", ""), r"infixes: '\(\?<=a' is no regular expression: missing \)"),
        (("en", "", "["), r"no_exceptions: '\[' is no regular expression"),
        (("xq", "", ""), r"'xq' is no language of spaCy; set `lang`"),
    ],
)
def test_errors_say_which_setting_is_wrong(arguments, message):
    with pytest.raises(InputError, match=message):
        make_nlp(*arguments)
