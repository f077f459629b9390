"""Spans that lost: grouped by why and to what, and what would save them, tried with the tokenizer."""

import json
import re

import pytest
import spacy
import yaml

from labelwise.common.errors import InputError
from labelwise.corpus.tokenizer import TokenizerRules, extend_tokenizer, write_tokenizer
from labelwise.merge.rules.settings import Settings
from labelwise.report.lost import BOTH, EXAMPLES, MOVE, OWN_LABEL, group_lost, propose_infix


def groups(merging, rows: list[tuple[str, str, str]], labels: str = "A", **rules):
    """Merge texts with one span each, given by what it covers, and group what was lost."""
    tasks = [
        {"text": text, "spans": [{"start": text.index(span), "end": text.index(span) + len(span), "label": label}]}
        for text, span, label in rows
    ]
    merging.declared.clear()
    merging.add("a", list(labels), tasks)
    merging.run(tokenizer=TokenizerRules(**rules))
    corpus = merging.root / "corpus"
    return group_lost(corpus / "lost_spans.jsonl", corpus / "tokenizer.json")


def pasted(remedy: str) -> tuple[str, ...]:
    """What YAML makes of a proposed rule."""
    (found,) = re.findall(r"- '.*' would", remedy)
    return tuple(yaml.safe_load(found.removesuffix(" would")))


def test_an_infix_that_saves_spans_is_proposed_and_really_does(merging):
    """Numbers and units: the proposal goes into project.yml, and nothing is lost any more."""
    rows = [(f"add {n}Ωx now", f"{n}", "A") for n in range(10, 16)]
    (group,) = groups(merging, rows)
    assert (group.reason, group.what, group.spans) == ("no token boundary", "0|a", 6)
    assert "would save 6 of 6" in group.remedy
    assert groups(merging, rows, infixes=pasted(group.remedy)) == []
    assert len(group.examples) == EXAMPLES
    one = group.examples[0]
    assert ([one.text[one.start : one.end] + "Ωx"], one.label) == (one.against, "A")


def test_a_tokenizer_without_rules_has_none_proposed(merging):
    merging.add("a", ["A"], [{"text": f"{n}km", "spans": [{"start": 0, "end": 1, "label": "A"}]} for n in range(3)])
    between_spaces = {"@tokenizers": "spacy.vi.VietnameseTokenizer", "use_pyvi": False}
    merging.run(lang="vi", tokenizer=TokenizerRules(block=between_spaces))
    corpus = merging.root / "corpus"
    (group,) = group_lost(corpus / "lost_spans.jsonl", corpus / "tokenizer.json")
    assert (group.spans, group.remedy) == (3, MOVE)


def test_an_exception_of_the_tokenizer_is_named(merging):
    """A smiley in English: no infix splits it."""
    rows = [("that is one (sic): two", "one (sic)", "A"), ("here is one (sic): two", "one (sic)", "A")]
    (group,) = groups(merging, rows)
    assert "tokenizer.no_exceptions" in group.remedy
    assert groups(merging, rows, no_exceptions=pasted(group.remedy)) == []


@pytest.mark.parametrize("what", ["a|a", "A|a", "A|A", "0|0", ".|.", "", "|"])
def test_no_infix_is_proposed_that_would_split_words_and_numbers(what):
    assert propose_infix(what) == ""


def test_a_single_span_is_not_worth_a_rule(merging):
    (group,) = groups(merging, [("add 10Ωx now", "10", "A")])
    assert (group.what, group.remedy) == ("0|a", MOVE)


def test_a_part_of_a_word_has_to_be_moved(merging):
    (group,) = groups(merging, [("the footballer", "football", "A"), ("a footballer", "football", "A")])
    assert (group.what, group.remedy) == ("a|a", MOVE)


def test_no_infix_is_proposed_that_would_split_before_a_mark(merging):
    (group,) = groups(merging, [("यह किताब", "क", "A"), ("वह किताब", "क", "A")])
    assert (group.what, group.remedy) == ("a|a", MOVE)


@pytest.mark.parametrize("what", ["0|a", "a|0", "a|A", "A|.", "(|a", "0|%"])
def test_a_proposal_splits_there_and_not_elsewhere(what):
    """Within a word, between the two characters alone."""
    before, after = what[0], what[2]
    nlp = spacy.blank("en")
    extend_tokenizer(nlp, TokenizerRules(infixes=(propose_infix(what),)))
    word = f"xx{before}{before}{after}{after}xx".replace("0", "7")
    tokens = [token.text for token in nlp(word)]
    cut = word.index(f"{before}{after}".replace("0", "7")) + 1
    assert cut in {token.idx for token in nlp(word)}, tokens


def test_overlaps_are_grouped_by_labels_the_most_frequent_first(merging):
    text = "New York Marathon"
    tasks = [
        {"text": f"{text} {n}", "spans": [{"start": 0, "end": 17, "label": "B"}, {"start": 0, "end": 8, "label": "A"}]}
        for n in range(5)
    ]
    same = [{"start": 0, "end": 8, "label": label} for label in "AB"]
    merging.add("a", ["A", "B"], [*tasks, {"text": text, "spans": same, "meta": {"doc": "one.txt"}}])
    merging.run()
    corpus = merging.root / "corpus"
    found = group_lost(corpus / "lost_spans.jsonl", corpus / "tokenizer.json")
    expected = [("nested", "A, B", 5, 5), ("same span", "B, A", 1, 1)]
    assert [(group.reason, group.what, group.spans, group.learnt) for group in found] == expected
    assert found[0].remedy == BOTH
    assert found[0].examples[0].against == [text]
    assert found[1].examples[0].doc == "one.txt"


def test_overlapping_spans_of_one_label_cannot_be_learnt(merging):
    spans = [{"start": 0, "end": 17, "label": "A"}, {"start": 0, "end": 8, "label": "A"}]
    merging.add("a", ["A"], [{"text": "New York Marathon", "spans": spans}])
    merging.run()
    corpus = merging.root / "corpus"
    (group,) = group_lost(corpus / "lost_spans.jsonl", corpus / "tokenizer.json")
    assert (group.what, group.spans, group.learnt, group.remedy) == ("A, A", 1, 0, OWN_LABEL)


def test_a_file_that_is_not_there_has_no_spans_and_one_that_is_something_else_is_named(tmp_path):
    assert group_lost(tmp_path / "lost_spans.jsonl", tmp_path / "tokenizer.json") == []
    write_tokenizer(tmp_path / "tokenizer.json", spacy.blank("en"), Settings().tokenizer)
    (tmp_path / "lost_spans.jsonl").write_text(json.dumps({"text": "x"}) + "\n")
    with pytest.raises(InputError, match=r"lost_spans\.jsonl:1: not a span that lost .*; run the merge again"):
        group_lost(tmp_path / "lost_spans.jsonl", tmp_path / "tokenizer.json")
