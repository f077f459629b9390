import os
import re
from collections import Counter

import pytest

from labelwise.base.errors import InputError
from labelwise.corpus.ledger import Ledger
from labelwise.datasets.undeclared import find_undeclared
from labelwise.merge.rules.policies import Policies
from labelwise.train.config import TrainingConfig
from labelwise.train.train_pipeline import train_pipeline
from tests.conftest import ROOT, Merging, run_command, task, words_of


def rows(texts: range, marked: range = range(0)) -> list[dict]:
    return [task(f"text {number}", *([(0, 4)] if number in marked else [])) for number in texts]


def all_words(ledger: Ledger) -> str:
    return "\n".join(words_of(ledger.checks))


@pytest.mark.guarantee("moved-splits")
def test_answers_left_out_for_their_split_are_named_with_both_data_sets(merging: Merging):
    merging.add("own", ["A"], rows(range(3)), split="test")
    merging.add("other", ["A"], rows(range(1, 5)), split="train")
    merging.add("new", ["B"], rows(range(4)))
    ledger = merging.run()
    assert ledger.rows == Counter({"merged": 9, "split conflict": 2})
    assert "Dataset 'other': 2 answers left out; 'own' declares another split for their texts. " in all_words(ledger)
    assert "'new'" not in all_words(ledger)


def test_splits_that_are_empty_or_small_are_said(merging: Merging):
    merging.add("a", ["A"], rows(range(3), marked=range(3)))
    text = all_words(merging.run(test_ratio=0.1, dev_ratio=0.0))
    assert "No text is in test. Raise test_ratio in project.yml, or declare a dataset with split: test" in text
    merging.add("b", ["B"], rows(range(300, 400)))
    ledger = merging.run()
    assert f"Only {ledger.texts['test']} test text" in all_words(ledger)
    assert "No gold of label B in dev: training chooses the best pipeline without it. Annotate" in all_words(ledger)
    merging.declared.clear()
    merging.add("a", ["A", "B"], rows(range(400), marked=range(400)))
    text = all_words(merging.run())
    assert "No gold of label B in test: scores say nothing about it. " in text
    assert "raise test_ratio" in text
    assert "Only" not in text
    merging.declared[0]["labels"] = ["A"]
    merging.add("b", ["A"], [])
    assert all_words(merging.run()) == "Dataset 'b': no rows. Check its path."


def test_equal_texts_need_other_texts_and_no_other_ratio(merging: Merging):
    merging.add("a", ["A"], [task("text 0", _annotator_id="ann", meta={"row": n}) for n in range(200)])
    text = all_words(merging.run())
    assert "The datasets have 1 distinct text: too few for train, dev and test. Add other texts." in text
    assert "_ratio" not in text


def test_what_a_ledger_counts_is_said(merging: Merging):
    for who, spans in (("ann", [(0, 4)]), ("bob", []), ("eve", [])):
        merging.add(who, ["A"], [task("text 0", *spans, _annotator_id=who)])
    merging.add("own", ["A"], rows(range(5, 6), marked=range(5, 6)), split="test")
    merging.add("other", ["A"], rows(range(5, 40)), split="train")
    merging.add("near", ["as"], [task("text 0")])
    text = all_words(merging.run(split_by="doc", near_duplicates="off"))
    assert "'as' and 'A' may be one label: their names are nearly equal, or one is short for the other." in text
    assert "1 span outvoted" in text
    assert "Near-duplicates between training and test were not checked." in text
    assert "1 text without 'doc' in the meta" in text
    assert "left out" not in text


@pytest.mark.guarantee("unmarked-labels")
@pytest.mark.parametrize("entry", [{"labels": ["PLACE", "A"]}, {"labels": ["PLACE"], "absent": ["A"]}])
@pytest.mark.parametrize(("marked", "stops"), [(9, False), (10, True)])
def test_a_label_that_only_others_mark_in_a_data_sets_texts_stops_the_merge(merging: Merging, entry, marked, stops):
    places = [task(f"text {n}", (0, 4), label="PLACE") for n in range(100, 400)]
    merging.add("places", rows=places, **entry)
    merging.add("a", ["A"], rows(range(400), marked=range(100, 100 + marked)))
    ignored = [task(f"text {n}", answer="ignore") for n in range(100, 400)]
    merging.add("ignored", ["A"], [*ignored, task("another text")])
    said = (
        "Dataset 'places': its entry lists labels that it never marks, and that others mark in its 300 texts: "
        f"A ({marked})."
    )
    assert [sentence.startswith(said) for sentence in stopped(merging.run())] == [True] * stops
    merging.declared[0]["expect_losses"] = True
    merging.add("b", ["PLACE"], rows(range(400, 401)))
    assert stopped(merging.run()) == []


@pytest.mark.parametrize(("late", "asks"), [(0, False), (9, False), (40, True)])
def test_a_label_that_the_first_rows_lack_is_asked_about_and_the_advice_makes_it_unknown_there(
    merging: Merging, late, asks
):
    def row(number: int) -> dict:
        marks = [(5, 5 + len(str(number)), "A")] if number >= late and number % 2 else []
        return task(f"text {number}", (0, 4, "PLACE"), *marks)

    merging.add("two", ["A", "PLACE"], [row(number) for number in range(100)], path="two*.jsonl")
    ledger = merging.run(test_ratio=0.0, dev_ratio=0.0)
    said = "Dataset 'two': its first 41 rows have no span of 'A', the others 30. Was the label introduced later? "
    assert (said in all_words(ledger)) == asks
    assert ledger.labels["A"]["complete"] == 100
    if not asks:
        return
    (words,) = [words for words in words_of(ledger.checks) if said in words]
    folder = merging.root / "tasks"
    cut, entries = re.search(r"`(head .*?)`", words)[1], words[words.index("- name: two-1") :]
    run_command(["bash", "-c", f"{cut}; rm two.jsonl"], cwd=folder, env=os.environ)
    (folder / "datasets.yml").write_text(entries, encoding="utf8")
    again = merging.run(test_ratio=0.0, dev_ratio=0.0)
    assert said not in all_words(again)
    assert {label: counts["complete"] for label, counts in again.labels.items()} == {"A": 59, "PLACE": 100}


def test_topics_that_follow_each_other_are_no_late_label(merging: Merging):
    def row(number: int) -> dict:
        return task(f"text {number}", (0, 4, "FOOD" if number < 40 else "PLACE"), (5, 5 + len(str(number)), "A"))

    merging.add("topics", ["A", "FOOD", "PLACE"], [row(number) for number in range(100)])
    assert "introduced later" not in all_words(merging.run())


def test_a_label_under_two_names_is_told_of(merging: Merging):
    marked = rows(range(40), marked=range(40))
    merging.add("new", ["B"], [task(row["text"], (0, 4, "B")) for row in marked[:10]])
    merging.add("old", ["A"], marked)
    text = all_words(merging.run(test_ratio=0, dev_ratio=0))
    assert "10 of 40 spans of 'A' are spans of 'B', too." in text
    assert "add `rename: {A: B}` to its entries in datasets.yml, and list 'B' in their `labels` instead." in text
    merging.declared[0] |= {"labels": ["A"], "rename": {"B": "A"}}
    merging.add("third", ["C"], [task(row["text"], (0, 4, "C")) for row in marked[:9]])
    text = all_words(merging.run(test_ratio=0, dev_ratio=0))
    assert "too." not in text
    merging.add("forgotten", ["B"], rows(range(50, 60)))
    text = all_words(merging.run(test_ratio=0, dev_ratio=0))
    assert (
        "Dataset 'new': renames 'B' to 'A', but another dataset still declares 'B'. If that is the same label, add"
        in text
    )


def test_labels_that_two_entries_swap_arent_one(merging: Merging):
    merging.add("one", ["A", "B"], [task("text 1", (0, 4, "A"))], rename={"A": "B", "B": "A"})
    assert "renames" not in all_words(merging.run())


@pytest.mark.parametrize(
    ("change", "declared", "warned"),
    [
        (range(0), {}, True),
        (range(1), {}, True),  # as when a text was corrected
        (range(9), {}, False),
        (range(0), {"annotator": "bob"}, False),
    ],
)
def test_two_anonymous_agreeing_exports_may_be_one_persons(merging: Merging, change, declared, warned):
    """As doccano's: without times, nothing else tells a later export of the other."""
    later = [task(f"text {number}", (0, 4 + 2 * (number in change))) for number in range(60)]
    merging.add("week-1", ["A"], rows(range(40), marked=range(40)))
    merging.add("week-2", ["A"], later, **declared)
    f = 1 - len(change) / 40
    text = all_words(merging.run())
    question = f"'week-1' and 'week-2' are anonymous, so they count as two annotators of 40 texts (F1 {f:.3f})."
    assert (question in text) == warned
    assert ("'week-1' is a part of the other; to leave it out, add `skip: true`" in text) == (warned and f == 1)


@pytest.mark.parametrize(
    ("one", "other", "asked"),
    [
        ("ner_2024-01-01", "ner_2024-03-01", True),
        ("ner_v1", "ner_v2_final", True),
        ("ann", "ann_2", True),
        ("a1", "a2", False),
    ],
)
def test_names_with_a_date_or_a_version_may_be_exports_of_one_dataset(merging: Merging, one, other, asked):
    merging.add(one, ["A"], rows(range(40), marked=range(40)))
    merging.add(other, ["A"], [task(f"text {number}", (0, 4 + 2 * (number < 20))) for number in range(40)])
    assert ("count as two annotators of 40 texts (F1 0.500). Same person?" in all_words(merging.run())) == asked


def stopped(ledger: Ledger) -> list[str]:
    return words_of(check for check in ledger.checks if check.stops)


@pytest.mark.parametrize(
    ("new", "old", "both", "stops"),
    [(40, 0, 0, True), (30, 10, 0, True), (10, 50, 0, False), (10, 49, 1, None), (9, 51, 0, None)],
)
def test_a_label_that_some_or_all_spans_have_under_another_name(merging: Merging, new, old, both, stops):
    """In all spans, three quarters, or under a fifth; not in nine.

    both (int): texts with both labels, which are then two labels.
    """
    marks = [[(0, 4, "ACIDITY")]] * new + [[(0, 4, "PH")]] * old + [[(0, 4, "PH"), (8, 12, "ACIDITY")]] * both
    marked = [task(f"text {n + 10} here", (5, 7, "TEMP"), *spans) for n, spans in enumerate(marks)]
    merging.add("ph", ["PH", "TEMP"], marked, rename={"T": "TEMP"})
    ledger = merging.run(test_ratio=0, dev_ratio=0)
    hint = [words for words in words_of(ledger.checks) if "another name" in words]
    assert stopped(ledger) == (hint if stops else [])
    if stops is None:
        assert not hint
        return
    [words] = hint
    assert f"{new} spans have the undeclared label 'ACIDITY', and no text with one has a span of 'PH'" in words
    assert "If 'ACIDITY' is another name of 'PH'" in words
    assert words.endswith("rename: {T: TEMP, ACIDITY: PH} expect_losses: true")
    merging.declared[0]["expect_losses"] = True
    merging.add("b", ["PH"], [])
    assert not stopped(merging.run(test_ratio=0, dev_ratio=0))


def test_an_undeclared_label_in_few_texts_is_no_other_name_by_chance(merging: Merging):
    marks = [[(0, 4, "RARE")]] * 3 + [[(0, 4, "A")]] * 40 + [[(0, 4, "MORE"), (8, 12, "A")]] * 12
    merging.add("a", ["A", "RARE"], [task(f"text {n + 10} here", *spans) for n, spans in enumerate(marks)])
    assert "another name" not in all_words(merging.run(test_ratio=0, dev_ratio=0))


def test_texts_annotated_for_some_labels_are_normal_if_datasets_share_texts_or_labels(merging: Merging):
    """Two groups that share neither are named, with `absent`, never with `coverage: outside`."""
    merging.add("person", ["PER"], rows(range(30)))
    merging.add("place", ["LOC"], rows(range(20, 50)))
    merging.add("more-places", ["LOC"], rows(range(60, 90)))
    text = all_words(merging.run())
    assert "share neither" not in text
    assert "some labels only" not in text
    merging.add("price", ["PRICE"], rows(range(100, 130)))
    ledger = merging.run()
    [words] = [words for words in words_of(ledger.checks) if "share neither" in words]
    assert words.startswith("Datasets 'person', 'price' share neither texts nor labels")
    assert "absent" in words
    assert "coverage" not in words
    merging.declared[-1]["absent"] = ["PER", "LOC"]
    merging.add("last", ["PRICE"], rows(range(130, 131)))
    assert "share neither" not in all_words(merging.run())


@pytest.mark.parametrize(
    ("kept", "overlap", "warned"), [(2, "longest", True), (3, "longest", False), (2, "first", False)]
)
def test_a_label_whose_spans_lie_in_longer_ones_of_another_dataset_is_named(merging: Merging, kept, overlap, warned):
    """At least ten spans and four fifths of a label, as whole addresses in spans.manual."""
    texts = [f"text {number + 10} here" for number in range(12)]
    merging.add("people", ["PER"], [task(text, (0, 4), label="PER") for text in texts])
    merging.add("phrases", ["NP"], [task(text, (0, 7), label="NP") for text in texts[kept:]])
    ledger = merging.run(test_ratio=0, dev_ratio=0, policies=Policies(overlap=overlap))
    sentences = [words for words in words_of(ledger.checks) if "overlap: first" in words]
    assert bool(sentences) == warned
    if warned:
        assert sentences[0].startswith("Dataset 'people': 10 of 12 spans of PER aren't in doc.ents")
        assert "'phrases'" in sentences[0]
        assert 'doc.spans["gold"]' in sentences[0]


def test_spans_of_another_label_are_asked_about_and_not_to_be_declared_first(merging: Merging):
    """Equal spans aren't longer; `overlap: first` would take the other label out of doc.ents."""
    texts = [f"text {number + 10} here" for number in range(12)]
    merging.add("ann", ["PER"], [task(text, (0, 4), label="PER") for text in texts])
    merging.add("leo", ["HUMAN"], [task(text, (0, 4), label="HUMAN") for text in texts])
    printed = all_words(merging.run(test_ratio=0, dev_ratio=0))
    assert "12 of 12 spans of 'HUMAN' are spans of 'PER', too" in printed
    assert "overlap: first" not in printed


@pytest.mark.parametrize(("name", "warned"), [("food-2026-06-01", True), ("food2", True), ("food-leo", False)])
def test_a_later_export_with_corrections_is_asked_about_by_its_name(merging: Merging, name, warned):
    texts = [f"text {number + 10} here" for number in range(30)]
    merging.add("food", ["FOOD"], [task(text, (0, 4), label="FOOD") for text in texts])
    corrected = [task(text, *[(0, 4)] * (number > 5), label="FOOD") for number, text in enumerate(texts)]
    merging.add(name, ["FOOD"], corrected)
    assert ("Same person?" in all_words(merging.run())) == warned


def test_a_split_that_few_texts_leave_empty_is_told_with_a_salt_that_fills_it(merging: Merging):
    merging.add("a", ["A"], rows(range(10), marked=range(10)))
    ratios = {"dev_ratio": 0.1, "test_ratio": 0.1}
    salt = next(str(n) for n in range(99) if not merging.run(split_salt=str(n), **ratios).texts["dev"])
    ledger = merging.run(split_salt=salt, **ratios)
    [words] = [words for words in words_of(ledger.checks) if "No text is in dev. " in words]
    assert words.startswith(
        "No text is in dev. Raise dev_ratio in project.yml, or declare a dataset with split: dev. Or "
    )
    new = re.search(r"split_salt: '(\d+)'$", words)
    assert new
    config = TrainingConfig(ROOT / "configs/cpu.cfg", merging.root / "corpus")
    with pytest.raises(InputError, match=re.escape(new[0])):
        train_pipeline(config, merging.root / "model", merging.root / "curve.tsv")
    assert all(merging.run(split_salt=new[1], **ratios).texts[split] for split in ("train", "dev", "test"))
    assert "No text is in dev" not in all_words(merging.run(split_salt=salt, dev_ratio=0, test_ratio=0.1))
    merging.declared[0]["split"] = "train"
    merging.add("b", ["A"], rows(range(20, 21)), split="test")
    assert "No text is in dev" not in all_words(merging.run(split_salt=salt, **ratios))
    with pytest.raises(InputError, match="No text is in dev"):
        train_pipeline(config, merging.root / "model", merging.root / "curve.tsv")


def test_texts_that_nobody_annotated_are_no_negatives(merging: Merging):
    raw = [{"text": f"raw {number}"} for number in range(3)]
    merging.add("a", ["A"], [*rows(range(30), range(30)), *raw])
    merging.add("b", ["A"], [{"text": f"other {number}"} for number in range(4)])
    assert merging.run().rows == Counter({"merged": 34, "not annotated": 3})
    merging.add("c", ["A"], [{"text": f"Go to <LOC>Riga {number}</LOC> now"} for number in range(10)])
    ledger = merging.run()
    assert ledger.rows == Counter({"merged": 34, "not annotated": 3, "unsupported format": 10})
    assert "Dataset 'c': 10 of 10 rows can't be used: unsupported format (10)" in all_words(ledger)


@pytest.mark.parametrize(
    ("begin", "written", "reading"), [("", (5, 8), "inclusive"), ("\U0001f600 ", (8, 12), "utf-16")]
)
def test_quoted_words_show_how_offsets_count(merging: Merging, begin: str, written: tuple[int, int], reading: str):
    start, end = written
    span = {"start": start, "end": end, "label": "CITY", "text": "Riga"}
    moved = [{"text": f"{begin}From Riga to {n}", "spans": [span], "answer": "accept"} for n in range(10)]
    merging.add("a", ["A", "CITY"], [*(rows(range(9), range(9)) if reading == "utf-16" else ()), *moved])
    labels = find_undeclared(merging.root / "tasks", [])
    assert [label.entry.labels[-1] for label in labels if label.entry.name == "a"] == ["CITY"]
    assert f"Dataset 'a': 10 spans have unusable offsets; 0 with `{reading}` offsets" in all_words(merging.run())
    merging.declared[0]["offsets"] = reading
    merging.add("b", ["A"], rows(range(20, 22)))
    ledger = merging.run()
    assert ledger.labels["CITY"]["entity"] == 10
    assert not ledger.spans["invalid"]
