import json
import re
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from labelwise.base.errors import InputError
from labelwise.corpus.manifest import read_manifest
from labelwise.merge import check_kinds
from scripts.train import train_cli
from scripts.why import why_cli
from tests.cases.making import PROJECT, N, jsonl, merge_folder, merge_rows, run, sentences, table, tasks
from tests.conftest import ROOT, Merging

ALL = {"PER": N, "LOC": N, "DATE": N}
BOTH = {"PER": 40, "LOC": 40}


def prodigys(start: int = 0, end: int | None = None, before: str = "", every: int = 1) -> str:
    """Write the sentences, each `every`th behind some characters, and with moved offsets.

    end (int | None): how far ends are moved; None for as far as starts.
    """
    rows = tasks()
    for row in rows[every - 1 :: every]:
        row["text"] = before + row["text"]
        for span in row["spans"]:
            span |= {"start": span["start"] + start, "end": span["end"] + (start if end is None else end)}
    return jsonl(rows)


INCLUSIVE, ONE_BASED = prodigys(0, -1), prodigys(1)
LETTER = "Dear all,\r\n\r\nsee:\r\n"


def with_emoji(width: int) -> str:
    """Put two emoji and a space before every second sentence; an emoji counts as `width` characters."""
    return prodigys(2 * width + 1, before="😀🚀 ", every=2)


def section(name: str, *lines: str) -> str:
    text = PROJECT.read_text(encoding="utf8")
    for line in lines:
        key = line.partition(":")[0]
        before = rf"(?m)^({name}:[^\n]*\n(?:  [^\n]*\n)*?)"
        text = re.sub(rf"{before}  {key}: [^\n]*\n", r"\1", text, count=1)
        text = re.sub(before, rf"\1  {line}\n", text, count=1)
        assert f"\n  {line}\n" in text
    return text


def declared(*lines: str) -> str:
    return "".join(["- name: all\n  path: all.jsonl\n  labels: [PER, LOC, DATE]\n", *(f"  {line}\n" for line in lines)])


@pytest.mark.parametrize(
    ("content", "reading", "lost", "quoted"),
    [
        (INCLUSIVE, "inclusive", 180, r"\[\w+ \w+\]\w "),
        (ONE_BASED, "one-based", 180, r"\w\[\w+ \w+\] "),
        (prodigys(1, 0).replace(" .", "."), "one-based-inclusive", 180, r"\w\[\w+ \w+\] "),
        (with_emoji(2), "utf-16", 90, r"\w\[\w[\w ]+\]\w"),
        (with_emoji(4), "bytes", 60, r"\[.*\]"),
        (prodigys(len(LETTER) - 3, before=LETTER), "crlf", 180, r"\[.*\]"),
    ],
    ids=["inclusive", "one-based", "one-based-inclusive", "utf-16", "bytes", "crlf"],
)
def test_offsets_that_count_otherwise_are_named_with_the_line_to_paste(tmp_path, content, reading, lost, quoted):
    outcome = merge_rows(tmp_path, all=content)
    assert outcome.status == 1
    assert f"{lost} spans have unusable offsets; 0 with `{reading}` offsets" in outcome.said
    assert len(re.findall(rf"(?m)^    all\.jsonl:\d+  PER  .*{quoted}.*$", outcome.printed)) >= 1, outcome.printed
    assert f"    offsets: {reading}\n" in outcome.printed
    assert "⚠" not in outcome.printed.partition("✘")[2], "no advice instead"


def test_offsets_that_label_studio_does_not_quote_are_read_in_one_way(tmp_path: Path) -> None:
    rows = []
    for row in map(json.loads, with_emoji(2).replace(" .", "").splitlines()):
        result = [{"type": "labels", "value": {**span, "labels": [span["label"]]}} for span in row["spans"]]
        rows.append({"data": {"text": row["text"]}, "annotations": [{"result": result}]})
    files: dict[str, Any] = {"prodigy/all.json": json.dumps(rows)}
    assert "spans have unusable offsets; 0 with `utf-16` offsets" in merge_folder(tmp_path, files).said
    assert merge_rows(tmp_path, declared("offsets: utf-16").replace(".jsonl", ".json")).entities == ALL


def test_no_line_is_advised_for_offsets_that_brat_does_not_write(tmp_path: Path) -> None:
    files = brats(("one", "PER LOC DATE"))
    files = {name: re.sub(r" (\d+)\t.*", lambda end: f" {int(end[1]) - 1}", text) for name, text in files.items()}
    outcome = merge_folder(tmp_path, files)
    assert (outcome.status, "120 spans have unusable offsets; 0 with `inclusive` offsets" in outcome.said) == (1, True)
    assert "Correct the offsets in the .ann files: brat counts characters from 0" in outcome.said
    assert "    offsets:" not in outcome.printed


@pytest.mark.parametrize(("rejected", "warned"), [(12, True), (11, False)])
def test_answers_with_one_span_each_and_many_rejected_are_asked_about(tmp_path: Path, rejected: int, warned: bool):
    """As old versions of ner.teach wrote them, without an interface."""
    rows = [{"text": sentence.text, "spans": sentence.objects()[:1], "answer": "accept"} for sentence in sentences()]
    rows[:rejected] = [row | {"answer": "reject"} for row in rows[:rejected]]
    files: dict[str, Any] = {"prodigy/teach.jsonl": jsonl(rows)}
    outcome = merge_folder(tmp_path, files)
    assert ("all 60 answers have one span each, and 12 of them are rejected" in outcome.said) == warned
    assert ("    kind: binary" in outcome.printed) == warned
    for kind, complete in (("complete", N - rejected), ("binary", 0)):
        entry = f"- {{name: teach, path: teach.jsonl, labels: [PER], kind: {kind}}}\n"
        outcome = merge_rows(tmp_path, entry)
        assert (outcome.ledger["labels"]["PER"].get("complete", 0), "one span each" in outcome.printed) == (
            complete,
            False,
        )


@pytest.mark.parametrize(
    ("tag", "warned"),
    [("B_LOC", True), ("b-LOC", True), ("LOC-B", True), ("0", True), ("B_XX", False), ("OTHER", False)],
)
def test_tags_that_are_written_otherwise_than_most_are_warned_of(tmp_path: Path, tag: str, warned: bool) -> None:
    rows = [[cells if cells[0] != "Lyon" else (cells[0], tag) for cells in sentence.tagged] for sentence in sentences()]
    outcome = merge_folder(tmp_path, {"prodigy/all.tsv": table(rows)})
    assert (f"look like tags that aren't written like the others: {tag} (" in outcome.said) == warned


@pytest.mark.parametrize(("rows", "span", "warned"), [(60, 0, True), (60, 1, False), (9, 0, False)])
def test_a_dataset_without_spans_is_asked_about(tmp_path: Path, rows: int, span: int, warned: bool) -> None:
    some = [{"text": one.text, "spans": one.objects()[: span * (n == 0)]} for n, one in enumerate(sentences(rows))]
    outcome = merge_rows(tmp_path, declared(), all=some)
    sentence = "none of its 60 texts has a span: all teach that they have no entity of labels PER, LOC, DATE"
    assert (sentence in outcome.said, "    skip: true" in outcome.printed) == (warned, warned)


@pytest.mark.parametrize(("inside", "warned"), [("B", True), ("I", False)])
def test_tags_that_all_begin_a_span_are_asked_about(tmp_path: Path, inside: str, warned: bool) -> None:
    rows = [[(token, tag.replace("I-", f"{inside}-")) for token, tag in sentence.tagged] for sentence in sentences()]
    outcome = merge_folder(tmp_path, {"prodigy/all.tsv": table(rows)})
    sentence = "each span of PER (60) is one token, and in 60 texts one is directly behind another"
    assert (outcome.status, sentence in outcome.said) == (0, warned)


@pytest.mark.parametrize(
    ("begin", "inside", "stopped"),
    [
        ("START-{}", "INSIDE-{}", True),
        ("{}", "I", True),
        ("{}.beg", "{}.end", True),
        ("B-{}", "I", True),
        ("{}-value", "{}-unit", False),
        ("{}", "INSIDE", False),
    ],
)
def test_labels_of_all_words_inside_entities_are_tags(tmp_path: Path, begin: str, inside: str, stopped: bool) -> None:
    """Whatever their spelling: each is directly behind another one."""
    rows = [
        [(token, (begin if tag[0] == "B" else inside).format(tag[2:]) if tag != "O" else tag) for token, tag in of]
        for of in (sentence.tagged for sentence in sentences())
    ]
    outcome = merge_folder(tmp_path / "inside", {"prodigy/all.tsv": table(rows)})
    assert (outcome.status, "its labels look like tags of tokens" in outcome.said) == (int(stopped), stopped)
    rows.append([("Noa", "O"), ("ran", inside.format("PER"))])
    outcome = merge_folder(tmp_path / "alone", {"prodigy/all.tsv": table(rows)})
    assert outcome.status == 0, "one begins an entity"


@pytest.mark.parametrize(("own", "stopped"), [(70, True), (59, False)])
def test_labels_that_occur_once_in_rows_are_asked_about(tmp_path: Path, own: int, stopped: bool) -> None:
    """Such as identifiers, or labels with their scores; one of three spans."""
    rows = tasks()
    for number, span in enumerate(span for row in rows for span in row["spans"]):
        span["label"] = f"Q{number}" if number < own else "PER"
    outcome = merge_rows(tmp_path, all=rows)
    message = f"{own} of {own + 1} labels occur only once: "
    assert (outcome.status, message in outcome.said) == (int(stopped), stopped)


@pytest.mark.parametrize(
    ("first", "empty", "others", "asked"),
    [(51, 10, 2, True), (1, 10, 2, True), (31, 10, 2, True), (52, 9, 1, False), (51, 10, 3, False)],
    ids=["last", "first", "between", "few", "like others"],
)
def test_many_rows_without_spans_one_after_the_other_are_asked_about(
    tmp_path: Path, first: int, empty: int, others: int, asked: bool
) -> None:
    """doccano exports texts that nobody has annotated yet, too."""
    rows = [{"text": row["text"], "label": row["spans"]} for row in tasks()]
    for row in rows[first - 1 : first - 1 + empty] + rows[20 : 20 + others]:
        row["label"] = []
    outcome = merge_rows(tmp_path, all=rows)
    again = [{"text": row["text"], "label": row["spans"]} for row in tasks()]
    assert "have no spans" not in merge_rows(tmp_path / "again", all=again + again[:40]).said, "replaced rows have some"
    question = f"{empty} of its 60 rows, from line {first} to {first + empty - 1}, have no spans. Are they annotated?"
    assert (question in outcome.said, outcome.status) == (asked, 0)


@pytest.mark.parametrize(
    ("one", "other", "together", "asked"),
    [
        ("PER", "Person", False, True),
        ("PER", "PERSON", True, False),
        ("DATE", "DATE_TIME", False, False),
        ("TE", "TERM", False, False),
    ],
)
def test_a_label_may_be_short_for_one_of_other_texts(
    tmp_path: Path, one: str, other: str, together: bool, asked: bool
) -> None:
    rows = tasks()
    for number, row in enumerate(rows):
        for span in row["spans"][:1]:
            span["label"] = (one, other)[number >= 30]
    outcome = merge_rows(tmp_path, a=rows[: 30 + together], b=rows[30:])
    assert ("may be one label: their names are nearly equal, or one is short" in outcome.said) == asked


def test_spans_of_all_words_are_tags(tmp_path: Path) -> None:
    """With the label O for words outside."""
    rows = []
    for sentence in sentences():
        spans, place = [], 0
        for token, tag in sentence.tagged:
            spans.append({"start": place, "end": place + len(token), "label": tag[2:] or "O"})
            place += len(token) + 1
        rows.append({"text": sentence.text, "spans": spans})
    outcome = merge_rows(tmp_path, all=rows)
    assert (outcome.status, "its labels look like tags of tokens (BIO, BILOU, BMES): O (" in outcome.said) == (1, True)


@pytest.mark.parametrize("tag", ["<{1}>{0}</{1}>", '<ENAMEX TYPE="{1}">{0}</ENAMEX>', "[{0}]({1})"])
def test_tags_in_texts_without_spans_are_asked_about(tmp_path: Path, tag: str) -> None:
    """Whatever answer says that the texts have none; not a text with spans, nor HTML."""
    good = [{"text": f"<b>{sentence.text}</b>", "label": []} for sentence in sentences()]
    good += [{"text": f"{sentence.text} <PER>x</PER>", "label": sentence.spans} for sentence in sentences()]
    rows = [{"text": f"{tag.format('Noa', 'PER')} : {sentence.text}", "label": []} for sentence in sentences()[:10]]
    for number, asked in ((9, False), (10, True)):
        outcome = merge_folder(tmp_path / str(number), {"prodigy/all.jsonl": jsonl(good + rows[:number])})
        assert (outcome.status, "10 texts without spans have tags in the text: " in outcome.said) == (
            asked,
            asked,
        )


def test_sentences_may_end_with_their_full_stop(tmp_path: Path) -> None:
    rows = [
        {"text": sentence.text, "spans": [{"start": 0, "end": len(sentence.text), "label": "CLAIM"}]}
        for sentence in sentences()
    ]
    outcome = merge_folder(tmp_path, {"prodigy/all.jsonl": jsonl(rows)})
    assert (outcome.status, outcome.entities) == (0, {"CLAIM": N})


def test_tags_in_quotes_are_refused(tmp_path: Path) -> None:
    rows = [[(token, f"'{tag}'") for token, tag in sentence.tagged] for sentence in sentences()]
    outcome = merge_folder(tmp_path, {"prodigy/all.tsv": table(rows)})
    assert (outcome.status, """only "'B-DATE'", "'B-LOC'",""" in outcome.said) == (1, True)


def test_a_line_without_the_tabs_of_its_sentence_is_malformed(tmp_path: Path) -> None:
    """Such as a note between the tokens, whose last word would be a tag."""
    content = table(sentence.tagged for sentence in sentences()).replace("Lyon\tB-LOC", "Lyon\tB-LOC\n// checked", 1)
    outcome = merge_folder(tmp_path, {"prodigy/all.tsv": content})
    assert outcome.ledger
    assert (outcome.ledger["rows"]["malformed"], outcome.entities) == (1, dict.fromkeys(ALL, N - 1))
    assert "tabs separate only some columns; use them for all" in outcome.printed


@pytest.mark.parametrize(("late", "stopped"), [(10, True), (9, False)])
def test_spans_that_end_behind_a_punctuation_mark_are_asked_about(tmp_path: Path, late: int, stopped: bool) -> None:
    """One of six: their ends are a character or a token too late, as exclusive ones of GLiNER's would be."""
    rows = [{"text": sentence.text.replace(" .", ","), "spans": sentence.objects()[2:]} for sentence in sentences()]
    rows = [row | {"spans": [row["spans"][0] | {"end": len(row["text"]) - (n >= late)}]} for n, row in enumerate(rows)]
    outcome = merge_rows(tmp_path, all=rows)
    assert (outcome.status, "10 of 60 spans end with a punctuation mark behind words" in outcome.said) == (
        stopped,
        stopped,
    )
    assert bool(re.search(r"(?m)^    DATE  .* in \[\d{4},\]$", outcome.printed)) == stopped


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (prodigys(11, before="A &amp; B &lt;C&gt;: ", every=2), "as in unescaped HTML, where `&amp;` is one character"),
        (prodigys(before=" \n  ", every=2), "without the white space at the start of the text"),
    ],
    ids=["html", "stripped"],
)
@pytest.mark.parametrize("alignment", ["drop", "expand"])
def test_offsets_of_a_changed_text_are_named(tmp_path: Path, content: str, named: str, alignment: str) -> None:
    outcome = merge_folder(tmp_path, {"prodigy/all.jsonl": content}, section("merge", f"alignment: {alignment}"))
    match = re.search(rf"Dataset 'all': \d+ spans have unusable offsets; \d if counted {named}", outcome.said)
    assert (outcome.status, bool(match)) == (1, True)
    assert "alignment: expand" not in outcome.printed


def test_files_whose_offsets_count_otherwise_get_entries_of_their_own(tmp_path: Path) -> None:
    contents = [INCLUSIVE, prodigys(), ONE_BASED]
    texts = [text.replace('"text": "', f'"text": "{"Yes. "[: 5 * (n == 1)]}') for n, text in enumerate(contents)]
    texts[1] = jsonl({"text": f"{sentence.text} Yes", "spans": sentence.objects()} for sentence in sentences())
    texts[2] = texts[2].replace(' ."', ' . No"')
    files: dict[str, Any] = {f"prodigy/{name}.jsonl": text for name, text in zip("abc", texts, strict=True)}
    files["prodigy/datasets.yml"] = "- name: all\n  path: [a.jsonl, b.jsonl, c.jsonl]\n  labels: [PER, LOC, DATE]\n"
    outcome = merge_folder(tmp_path, files)
    assert outcome.status == 1
    assert "360 spans have unusable offsets: a.jsonl (inclusive), c.jsonl (one-based)" in outcome.said
    entries = outcome.printed.partition("by these:\n")[2].partition("✘")[0]
    assert [(entry["name"], entry["path"], entry.get("offsets")) for entry in yaml.safe_load(entries)] == [
        ("all", ["b.jsonl"], None),
        ("all-inclusive", ["a.jsonl"], "inclusive"),
        ("all-one-based", ["c.jsonl"], "one-based"),
    ]
    outcome = merge_rows(tmp_path, entries)
    assert (outcome.status, outcome.entities) == (0, dict.fromkeys(ALL, 3 * N))


def test_files_with_one_other_reading_need_one_line(tmp_path: Path) -> None:
    rows = INCLUSIVE.splitlines(keepends=True)
    files: dict[str, Any] = {f"prodigy/{n}.jsonl": row for n, row in enumerate(rows[:20])}
    files["prodigy/datasets.yml"] = "- {name: all, path: '*.jsonl', labels: [PER, LOC, DATE]}\n"
    outcome = merge_folder(tmp_path, files)
    assert "60 spans have unusable offsets; 0 with `inclusive` offsets" in outcome.said


def test_spans_inside_words_stop_whatever_the_alignment(tmp_path: Path) -> None:
    rows = tasks()
    for number, row in enumerate(rows):
        row["spans"] = [
            span | {"start": span["start"] + 1, "end": span["end"] - 1 - number % 2} for span in row["spans"][:1]
        ]
    for alignment in ("drop", "expand"):
        outcome = merge_folder(
            tmp_path, {"prodigy/all.jsonl": jsonl(rows)}, section("merge", f"alignment: {alignment}")
        )
        assert (outcome.status, "60 of 60 spans start and end inside words" in outcome.said) == (1, True)
        assert "No other reading of the offsets fits better (tried: code-points, inclusive, " in outcome.said
        assert "alignment: expand" not in outcome.printed


def test_the_page_shows_what_the_merge_prints(tmp_path):
    outcome = merge_rows(tmp_path, person=INCLUSIVE)
    block = (ROOT / "docs/merge_stops.md").read_text(encoding="utf8").partition("```text\n")[2].partition("```")[0]
    assert " ".join(block.split()) in re.sub(r"\S+(?=assets/prodigy)", "", outcome.said)


def test_a_stopped_corpus_is_for_why_alone(tmp_path: Path, monkeypatch) -> None:
    assert merge_rows(tmp_path, all=prodigys()).status == 0
    assert read_manifest(tmp_path / "corpus").stops == []
    assert merge_rows(tmp_path, all=INCLUSIVE).status == 1
    corpus = tmp_path / "corpus"
    with pytest.raises(InputError, match=r"the merge found misread data: other offsets \(all\)"):
        read_manifest(corpus)
    monkeypatch.chdir(tmp_path)
    status, printed = run(train_cli, "cpu", "--corpus", corpus)
    assert (status, "found misread data" in " ".join(printed.split())) == (1, True)
    assert not (tmp_path / "training").exists()
    status, printed = run(why_cli, corpus, "all.jsonl:1")
    assert status == 0
    assert "misaligned; inside" in printed
    assert merge_rows(tmp_path, all=prodigys()).entities == ALL


def test_losses_that_are_expected_are_warned_of(tmp_path: Path) -> None:
    files = {"prodigy/all.jsonl": INCLUSIVE, "prodigy/datasets.yml": declared("expect_losses: true")}
    outcome = merge_folder(tmp_path, files)
    assert (outcome.status, "0 with `inclusive` offsets" in outcome.said) == (0, True)


def test_all_checks_of_all_datasets_are_printed_at_once(tmp_path: Path) -> None:
    rows = [
        {"text": f"{sentence.text} !", "spans": [{"start": 900, "end": 999, "label": "PER"}]}
        for sentence in sentences()
    ]
    files = {"prodigy/all.jsonl": INCLUSIVE, "prodigy/far.jsonl": jsonl(rows)}
    files["prodigy/datasets.yml"] = declared() + "- name: far\n  path: far.jsonl\n  labels: [PER]\n"
    outcome = merge_folder(tmp_path, files)
    assert outcome.status == 1
    assert "Dataset 'far': 60 of 60 spans can't be used: invalid (60)" in outcome.said
    assert re.search(r"(?m)^    far\.jsonl:\d+  invalid: PER 900 999: the text has \d+ characters$", outcome.printed)
    assert "No other reading of the offsets fits better (tried: " in outcome.said
    assert "Dataset 'all': 180 spans have unusable offsets" in outcome.said


def test_half_of_the_spans_may_be_lost(tmp_path: Path) -> None:
    rows = tasks()
    for number, row in enumerate(rows):
        row["spans"][0]["end"] -= number % 2  # "Noa Morea": nothing else would be right
        row["spans"] = row["spans"][:1]
    outcome = merge_rows(tmp_path, all=rows)
    assert (outcome.status, "30 of 60 spans start or end inside a token" in outcome.said) == (0, True)


@pytest.mark.parametrize(("label", "stops"), [("PER", False), ("PERSON", True)])
def test_undeclared_labels_are_losses_where_no_declared_one_has_spans(tmp_path: Path, label: str, stops: bool) -> None:
    outcome = merge_rows(tmp_path, f"- {{name: all, path: all.jsonl, labels: [{label}]}}\n", all=prodigys())
    assert (outcome.status, outcome.entities) == ((1, {}) if stops else (0, {"PER": N}))
    assert ("180 of 180 spans can't be used: undeclared label (180)" in outcome.said) == stops
    assert ("List DATE, LOC, PER in `labels`, if annotators were shown them." in outcome.said) == stops


def test_a_data_set_annotated_label_after_label_is_asked_about(tmp_path: Path) -> None:
    rows = [row | {"spans": row["spans"][n : n + 1], "answer": "accept"} for n in range(len(ALL)) for row in tasks()]
    outcome = merge_rows(tmp_path, all=rows)
    assert outcome.status == 1
    assert "all spans of LOC (60), PER (60) were replaced by later answers" in outcome.said
    assert "    duplicates: union" in outcome.printed
    assert "`labels: [DATE]`" in outcome.said
    assert merge_rows(tmp_path, declared("duplicates: union")).entities == ALL
    assert merge_rows(tmp_path, "- {name: all, path: all.jsonl, labels: [DATE]}\n").entities == {"DATE": N}


def test_a_pass_that_corrects_another_is_fine(tmp_path: Path) -> None:
    """Half of the persons were marked wrong; the second pass, later or in a later file, has all labels."""
    rows = tasks()
    first = [row | {"spans": [row["spans"][0] | {"end": 3}, *row["spans"][1:]]} for row in rows]
    timed = [row | {"_timestamp": n} for n, row in enumerate([*first, *rows], 1)]
    files = {"prodigy/old.jsonl": jsonl(first), "prodigy/new.jsonl": jsonl(rows)}
    entry = "- {name: all, path: [old.jsonl, new.jsonl], labels: [PER, LOC, DATE]}\n"
    for number, inputs in enumerate(({"prodigy/all.jsonl": jsonl(timed)}, files | {"prodigy/datasets.yml": entry})):
        outcome = merge_folder(tmp_path / str(number), inputs)
        assert (outcome.status, outcome.entities) == (0, ALL)
        assert not re.search("Dataset 'all': .*replaced", outcome.printed)
    outcome = merge_rows(tmp_path / "untimed", all=[*first, *rows])
    assert "Dataset 'all': 60 of 360 spans are only in rows that a later row of the same text replaced" in outcome.said
    entry = declared("duplicates: latest")
    assert "only in rows" not in merge_rows(tmp_path / "untimed", entry).said


def test_a_text_twice_with_other_spans_of_the_same_labels_is_warned_of_or_stops(tmp_path: Path) -> None:
    """As doccano writes the rows of two users. More than half of all spans in earlier rows stop the merge."""
    rows = tasks()
    later = [row | {"spans": row["spans"][:1]} for row in rows]
    outcome = merge_rows(tmp_path / "few", all=[*rows, *later[:10]])
    assert "Dataset 'all': 20 of 190 spans are only in rows that a later row of the same text replaced" in outcome.said
    assert (outcome.status, "    duplicates: union" in outcome.printed) == (0, True)
    other = [row | {"spans": [row["spans"][0] | {"end": 3}]} for row in rows]
    files = {"prodigy/all.jsonl": jsonl([*rows, *other])}
    outcome = merge_folder(tmp_path / "most", files)
    assert (outcome.status, "180 of 240 spans" in outcome.said) == (1, True)
    files["prodigy/datasets.yml"] = declared("duplicates: union")
    assert merge_folder(tmp_path / "most", files).status == 0
    timed = [row | {"_timestamp": n} for n, row in enumerate([*rows, *other], 1)]
    outcome = merge_rows(tmp_path / "timed", all=timed)
    assert (outcome.status, "180 of 240 spans are only in rows that a later" in outcome.said) == (0, True)
    assert "only in rows" not in merge_rows(tmp_path / "timed", declared("duplicates: latest")).said


def test_a_later_verdict_on_a_span_loses_no_span(tmp_path: Path) -> None:
    rows = [
        {"text": sentence.text, "spans": sentence.objects()[:1], "answer": "accept", "_view_id": "ner"}
        for sentence in sentences()
    ]
    again = [row | {"answer": "reject"} for row in rows[:30]]
    outcome = merge_rows(tmp_path, all=[*rows, *again])
    assert "only in rows" not in outcome.said


def test_rows_that_alone_had_spans_are_warned_of(tmp_path: Path) -> None:
    """As doccano writes a text that was imported twice."""
    rows = [
        {"id": 0, "text": sentence.text, "label": [list(span) for span in sentence.spans]} for sentence in sentences()
    ]
    again = [row | {"label": row["label"][2:]} for row in rows[:30]]
    outcome = merge_rows(tmp_path, all=[*rows, *again])
    assert outcome.status == 0
    assert "60 of 210 spans are only in rows that a later row" in outcome.said
    assert "    duplicates: union" in outcome.printed


def test_a_copy_of_a_data_set_is_named(tmp_path: Path) -> None:
    rows = [{"text": sentence.text, "spans": sentence.objects(), "_timestamp": 7} for sentence in sentences()]
    outcome = merge_rows(tmp_path, a=rows[:50], b=rows)
    assert "Dataset 'a': 50 of its 50 answers are copies of answers in 'b'" in outcome.said, "whichever of them counts"
    assert "skip: true" in outcome.printed
    assert outcome.entities == ALL


def test_a_part_of_another_file_is_named(tmp_path: Path) -> None:
    """As in doccano's archive: a file of all users' rows, and one per user."""
    rows = [{"text": sentence.text, "label": sentence.spans} for sentence in sentences()]
    outcome = merge_rows(tmp_path, admin=rows[:30], all=rows)
    assert "'admin' is a part of the other; to leave it out, add `skip: true` to its entry." in outcome.said


@pytest.mark.parametrize(("texts", "warned"), [(5, True), (4, False)])
def test_texts_in_lower_case_are_named(tmp_path: Path, texts: int, warned: bool) -> None:
    rows = tasks()
    low = [row | {"text": row["text"].lower()} for row in rows[:texts]]
    outcome = merge_rows(tmp_path, a=rows, b=low)
    assert ("5 texts of 'a' and 'b' differ in capitals only, so they aren't merged." in outcome.said) == warned


def test_texts_that_are_parts_of_others_are_named(tmp_path: Path) -> None:
    examples = sentences()
    places = [{"text": example.text, "spans": example.objects()[1:2]} for example in examples]
    documents = [" ".join(example.text for example in examples[start : start + 4]) for start in range(0, N, 4)]
    persons = [{"text": text, "spans": [{"start": 0, "end": text.index(" "), "label": "PER"}]} for text in documents]
    files = {"prodigy/places.jsonl": jsonl(places), "prodigy/persons.jsonl": jsonl(persons)}
    printed = merge_folder(tmp_path, files).said
    assert "60 of 60 texts of 'places' are parts of 15 texts of 'persons'" in printed


def test_parts_in_another_split_than_their_document_are_counted_and_can_be_kept_with_it(merging: Merging) -> None:
    sentences = [
        [f"Step {n} of protocol {protocol} takes {n * protocol} minutes ." for n in range(4)] for protocol in range(120)
    ]
    common = "Wash the tube with water and dry it ."
    parts = [sentence for of in sentences for sentence in of[:2]] + [common]
    merging.add("documents", ["A"], [{"text": " ".join([*of, common])} for of in sentences])
    merging.add("sentences", ["B"], [{"text": text} for text in parts])
    ratios = {"dev_ratio": 0.2, "test_ratio": 0.2}
    [finding] = [check for check in merging.run(**ratios).checks if check.kind == "parts of texts"]
    splits = {text: split for text, (split, _) in merging.docs().items()}
    apart = Counter()
    for of in sentences:
        document = splits[" ".join([*of, common])]
        apart.update(f"in {splits[part]}, document in {document}" for part in of[:2] if splits[part] != document)
    assert (finding.n, finding.values["documents"], finding.values["all"]) == (241, 120, 241)
    assert apart <= Counter(finding.values["leaks"])
    assert sum(finding.values["leaks"].values()) == apart.total() + 1, "and the common one"
    ledger = merging.run("kept", near_duplicates="group", near_similarity=1.0, workers=2, **ratios)
    together = {text: split for text, (split, _) in merging.docs("kept").items()}
    assert all({together[" ".join([*of, common])]} == {together[part] for part in of[:2]} for of in sentences)
    assert all(together[text] == splits[text] for text in together if text.endswith(common) and text != common)
    [finding] = [check for check in ledger.checks if check.kind == "parts of texts"]
    assert sum(finding.values["leaks"].values()) == 1


def test_a_part_of_a_text_takes_less_than_a_kilobyte_of_memory(
    merging: Merging, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first merge imports modules, so it isn't measured."""
    monkeypatch.setattr(check_kinds, "MAX_TEXTS", 50)

    def merge(documents: int) -> None:
        merging.declared.clear()
        of = [
            [f"Step {n} of protocol {protocol} takes {n * protocol} minutes ." for n in range(10)]
            for protocol in range(documents)
        ]
        merging.add(f"documents-{documents}", ["A"], [{"text": " ".join(sentences)} for sentences in of])
        merging.add(f"sentences-{documents}", ["B"], [{"text": text} for sentences in of for text in sentences])
        merging.run(str(documents), near_duplicates="group", near_similarity=1.0, docs_per_partition=32)

    merge(5)
    peaks = []
    for documents in (5, 45):
        tracemalloc.start()
        merge(documents)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 400 * 800


def test_equal_texts_are_no_parts_of_each_other(tmp_path: Path) -> None:
    examples = sentences()
    documents = [" ".join(example.text for example in examples[start : start + 4]) for start in range(0, N, 4)]
    rows = [{"text": text, "spans": [{"start": 0, "end": text.index(" "), "label": "PER"}]} for text in documents]
    short = [{"text": example.text[::-1], "spans": []} for example in examples]
    files = {"prodigy/all.jsonl": jsonl([*rows, *short]), "prodigy/again.jsonl": jsonl(rows)}
    assert "parts of" not in merge_folder(tmp_path, files).said


@pytest.mark.parametrize("texts", [9, 10])
def test_answers_of_one_person_with_and_without_a_name_are_asked_about(tmp_path: Path, texts: int) -> None:
    examples = sentences()
    old = jsonl({"text": example.text, "spans": example.objects()[:1]} for example in examples)
    new = jsonl({"text": example.text, "spans": [], "_annotator_id": "person-ann"} for example in examples[:texts])
    entry = "- name: person\n  path: [old.jsonl, new.jsonl]\n  labels: [PER]\n"
    files = {"prodigy/old.jsonl": old, "prodigy/new.jsonl": new, "prodigy/datasets.yml": entry}
    before = merge_folder(tmp_path, files)
    question = "Dataset 'person': 10 texts were answered by 'ann' and anonymously; these count as two annotators"
    assert (question in before.said, before.entities) == (texts == 10, {"PER": N})
    if texts == 10:
        assert "    annotator: ann\n" in before.printed
        after = merge_rows(tmp_path, entry + "  annotator: ann\n")
        assert ("anonymously" in after.printed, after.entities) == (False, {"PER": N - 10})


@pytest.mark.parametrize(
    ("place", "before", "after", "lang"),
    [
        ("北京", "第{}封信从", "寄来的。", "zh"),
        ("東京", "手紙{}は", "から届きました。", "ja"),
        ("เชียงใหม่", "จดหมาย{}จาก", "มาถึงแล้ว", "th"),
        ("서울", "편지 {}은 ", "에서 왔습니다.", "ko"),
        ("Ghent", "Letter{}from", "arrived.", ""),
    ],
)
def test_the_language_of_a_script_is_named(tmp_path: Path, place: str, before: str, after: str, lang: str) -> None:
    rows = []
    for number in range(20):
        head = before.format(number)
        span = {"start": len(head), "end": len(head) + len(place), "label": "LOC"}
        rows.append({"text": head + place + after, "spans": [span]})
    outcome = merge_rows(tmp_path, all=rows)
    assert re.findall("lang: [a-z]{2}$", outcome.printed, re.MULTILINE) == ([f"lang: {lang}"] if lang else [])
    assert (outcome.status, "expect_losses" in outcome.printed) == (1, not lang)
    if lang == "zh":
        outcome = merge_folder(tmp_path, {}, section("merge", "lang: zh"))
        assert (outcome.status, outcome.entities) == (0, {"LOC": 20})


@pytest.mark.parametrize(("lang", "named"), [("en", "lang: de"), ("de", "✔"), ("xx", "✔")])
def test_another_language_is_named(tmp_path: Path, lang: str, named: str) -> None:
    words = "Die Frau ist mit dem Zug in die Stadt gefahren und hat dort auch die alten Freunde von {} gesehen ."
    rows = [{"text": words.format(sentence.text), "spans": []} for sentence in sentences()]
    rows[0]["spans"] = [{"start": 4, "end": 8, "label": "PER"}]
    outcome = merge_folder(tmp_path, {"prodigy/all.jsonl": jsonl(rows)}, section("merge", f"lang: {lang}"))
    assert ("the texts have the stop words of" in outcome.said, named in outcome.printed) == (named != "✔", True)


def test_norwegian_by_its_usual_code_is_read(tmp_path: Path) -> None:
    assert merge_folder(tmp_path, {"prodigy/all.jsonl": prodigys()}, section("merge", "lang: no")).entities == ALL


def test_labels_that_differ_by_what_joins_their_words_may_be_one(tmp_path: Path) -> None:
    files = {}
    parts = ("a", "Birth Place", sentences()[:10]), ("b", "BIRTH_PLACE", sentences()[10:40])
    for name, label, some in (*parts, ("c", "birthplace", sentences()[40:])):
        rows = [{"text": one.text, "spans": [one.objects()[1] | {"label": label}]} for one in some]
        files[f"prodigy/{name}.jsonl"] = jsonl(rows)
    printed = " ".join(merge_folder(tmp_path, files).printed.split())
    assert printed.count("may be one label: their names are nearly equal") == 2
    assert all(f"`rename: {{{old}: BIRTH_PLACE}}`" in printed for old in ("Birth Place", "birthplace"))


def brats(*folders: tuple[str, str]) -> dict[str, str]:
    files = {}
    for folder, labels in folders:
        for number, sentence in enumerate(sentences()[:40]):
            lines = [
                f"T{n}\t{label} {start} {end}\t{sentence.text[start:end]}\n"
                for n, (start, end, label) in enumerate(sentence.spans, 1)
                if label in labels
            ]
            files[f"brat/{folder}/{number}.txt"] = sentence.text
            files[f"brat/{folder}/{number}.ann"] = "".join(lines)
    return files


@pytest.mark.parametrize(
    ("folders", "answer", "datasets", "entities"),
    [
        ([("ann", "PER LOC"), ("bob", "PER LOC")], "annotators", ["brat-ann", "brat-bob"], BOTH),
        ([("test/ann", "PER LOC"), ("test/bob", "PER LOC")], "annotators", ["brat-ann-test", "brat-bob-test"], BOTH),
        ([("per", "PER"), ("loc", "LOC")], "labels", ["brat-loc", "brat-per"], BOTH),
        ([("round9", "PER"), ("round10", "PER LOC")], "versions", ["brat"], BOTH),
    ],
    ids=["annotators", "in splits", "labels", "versions"],
)
def test_folders_with_the_same_texts_are_asked_about_once(tmp_path, folders, answer, datasets, entities):
    outcome = merge_folder(tmp_path, brats(*folders))
    assert (outcome.status, "2 folders share 40 texts" in outcome.said) == (1, True)
    assert f"\n  folders: {answer} " in outcome.printed
    outcome = merge_folder(tmp_path, {}, section("brat", f"folders: {answer}"))
    assert outcome.status == 0, outcome.printed
    assert (sorted(outcome.ledger["datasets"]), outcome.entities) == (datasets, entities)
    assert bool(outcome.ledger["agreement"]) == (answer == "annotators")


def test_labels_that_brats_own_settings_showed_are_declared(tmp_path: Path) -> None:
    conf = "[entities]\nName\n\tPER\n# a comment\n!Thing\n\tLOC\n[relations]\nOf Arg1:PER, Arg2:LOC\n"
    files = brats(("one", "PER"), ("two", "LOC")) | {"brat/one/annotation.conf": conf}
    merge_folder(tmp_path, files, section("brat", "folders: labels"))
    entries = yaml.safe_load((tmp_path / "corpus/tasks/datasets.yml").read_text())
    assert {entry["name"]: entry["labels"] for entry in entries} == {"brat-one": ["LOC", "PER"], "brat-two": ["LOC"]}


def test_folders_of_other_texts_without_a_common_label_are_warned_of(tmp_path: Path) -> None:
    files = brats(("per", "PER"), ("loc", "LOC"))
    half = {name: text for name, text in files.items() if ("per/" in name) == (int(Path(name).stem) < 20)}
    outcome = merge_folder(tmp_path, half)
    assert (outcome.status, "Folders have no label in common" in outcome.said) == (0, True)
    assert "folders: labels" in outcome.said
    assert "loc (LOC), per (PER)" in outcome.said


def test_a_brat_corpus_that_is_lost_stops(tmp_path: Path) -> None:
    files = brats(("one", "PER LOC DATE"))
    files = {name: f"{'x' * 9} {text}" if name.endswith(".txt") else text for name, text in files.items()}
    outcome = merge_folder(tmp_path, files)
    assert (outcome.status, "120 of 120 spans can't be used: " in outcome.said) == (1, True)
    assert "\n    one/0.ann:1  mention differs: 'T1\\tPER 0" in outcome.printed
    outcome = merge_folder(tmp_path, {}, section("brat", "expect_losses: true"))
    assert outcome.status == 0
    outcome = merge_folder(tmp_path, {}, section("brat", "shifted: nearest"))
    assert outcome.entities == {"PER": 40, "LOC": 40, "DATE": 40}


@pytest.mark.parametrize(("empty", "documents", "warned"), [(5, 20, True), (4, 8, False), (5, 21, False)])
def test_many_empty_files_of_annotations_are_warned_of(tmp_path: Path, empty: int, documents: int, warned: bool):
    """brat needs an empty file before a document can be annotated."""
    files = brats(("one", "PER LOC DATE"))
    files = {name: text for name, text in files.items() if int(Path(name).stem) < documents}
    files |= {f"brat/one/{number}.ann": "\n" * (number % 2) for number in range(empty)}
    question = f"{empty} of {documents} annotated brat documents have an empty .ann file"
    outcome = merge_folder(tmp_path, files)
    assert (outcome.status, question in outcome.said, "    empty_ann: skip" in outcome.printed) == (0, warned, warned)
    for value, texts in (("empty", documents), ("skip", documents - empty)):
        outcome = merge_folder(tmp_path, {}, section("brat", f"empty_ann: {value}"))
        assert ("have an empty" in outcome.printed, outcome.ledger["rows"]["merged"]) == (False, texts)
        assert outcome.ledger["rows"].get("not annotated", 0) == documents - texts


def in_pieces(line: re.Match[str]) -> str:
    return f"{line[1]} {int(line[1]) + 1};{int(line[2]) - 1} {line[2]}"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda text, marks: (f"{'x' * 9} {text}", marks), "shifted: nearest"),
        (lambda text, marks: (text, re.sub(r"(\d+) (\d+)\t.*", r"\1 \1", marks)), None),
        (lambda text, marks: (text, re.sub(r"(\d+) (\d+)\t.*", in_pieces, marks)), "discontinuous: cover"),
        (lambda text, marks: (text.replace("e", "\xe9").encode("cp1252"), marks), "encoding: cp1252"),
    ],
    ids=["shifted", "nothing helps", "pieces", "encoding"],
)
def test_the_line_that_may_help_is_named(tmp_path: Path, change: Any, line: str | None) -> None:
    files = brats(("one", "PER LOC DATE"))
    changed: dict[str, Any] = {}
    for name, text in files.items():
        if name.endswith(".txt"):
            marks = name.replace(".txt", ".ann")
            changed[name], changed[marks] = change(text, files[marks])
    outcome = merge_folder(tmp_path, changed)
    assert outcome.status == 1
    assert [
        line for line in ("shifted: nearest", "encoding: cp1252", "discontinuous: cover") if line in outcome.printed
    ] == ([line] if line else [])


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (["train", "dev", "test"], ["train", "dev", "test"]),
        (["food_training", "food_eval"], ["auto", "test"]),
        (["train"], ["auto"]),
        (["my-test"], ["auto"]),
        (["contest", "valid"], ["auto", "dev"]),
        (["train-test", "dev_2"], ["auto", "dev"]),
    ],
)
def test_files_named_after_splits_are_declared_for_them(tmp_path: Path, names: list[str], splits: list[str]) -> None:
    parts = [sentences()[number :: len(names)] for number in range(len(names))]
    rows = [jsonl({"text": sentence.text, "spans": sentence.objects()} for sentence in part) for part in parts]
    files = {f"prodigy/{name}.jsonl": content for name, content in zip(names, rows, strict=True)}
    printed = merge_folder(tmp_path, files).printed
    content = (tmp_path / "assets/prodigy/datasets.yml").read_text()
    declared = {name: re.search(rf"name: {name}\n(?:  .*\n)*?  split: (\w+)", content) for name in names}
    assert [declared[name][1] if declared[name] else "auto" for name in names] == splits
    for split in {*splits} - {"auto"}:
        assert re.search(rf"(?m)^\S+ .* {split}$", printed), "it is said"


@pytest.mark.parametrize(
    ("path", "keys", "status"),
    [
        ('"export/*.jsonl"', "", 1),
        ('"export/*.jsonl"', ", duplicates: latest", 0),
        ('"export/*.jsonl"', ", annotator: ann", 0),
        ("[export/bob.jsonl, export/ann.jsonl]", "", 0),
    ],
    ids=["a pattern", "declared exports", "one person's", "a list"],
)
def test_another_files_spans_are_not_replaced_because_of_its_name(tmp_path: Path, path: str, keys: str, status: int):
    """Two annotators' files, with a third of the texts in both, where one marks no person."""
    rows = tasks()
    bobs = [row | {"spans": row["spans"][row in rows[:40] :]} for row in rows[20:]]
    files = {"prodigy/export/ann.jsonl": jsonl(rows[:40]), "prodigy/export/bob.jsonl": jsonl(bobs)}
    entry = f"- {{name: people, path: {path}, labels: [PER, LOC, DATE]{keys}}}\n"
    outcome = merge_folder(tmp_path, files | {"prodigy/datasets.yml": entry})
    assert (outcome.status, "because its name sorts later" in outcome.said) == (status, status == 1)
    if status:
        assert "Dataset 'people': 20 of 220 spans" in outcome.said
        assert "    duplicates: latest\n" in outcome.printed
        entries = outcome.printed.partition("duplicates: latest\n")[2].partition("\n\n")[0]
        outcome = merge_folder(tmp_path, files | {"prodigy/datasets.yml": entries})
        assert (outcome.status, outcome.entities) == (0, ALL)
        assert outcome.ledger["agreement"]["PER"] == {"both": 0, "spans": 20, "texts": 20, "f": 0}, "two annotators'"
