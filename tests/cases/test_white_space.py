import unicodedata

import pytest

from tests.cases.making import jsonl, merge_folder, sentences

WAYS = {
    "a line end behind each": lambda text: text + "\n",
    "line ends of Windows": lambda text: text + "\r\n",
    "a blank before each": lambda text: " " + text,
    "two blanks for one": lambda text: text.replace(" ", "  "),
    "no-break spaces": lambda text: text.replace(" ", "\xa0"),
    "a line for each word": lambda text: text.replace(" ", "\n"),
    "decomposed": lambda text: unicodedata.normalize("NFD", text),
}


@pytest.mark.parametrize("way", WAYS)
def test_two_exports_of_the_same_texts_are_joined(tmp_path, way):
    person, place = [], []
    for sentence in sentences():
        text = sentence.text.replace("e", "\xe9")
        other = WAYS[way](text)
        start, end, _ = sentence.spans[1]
        start, end = (len(WAYS[way](f"{text[:offset]}|").partition("|")[0]) for offset in (start, end))
        person.append({"text": text, "spans": sentence.objects()[:1], "answer": "accept", "_view_id": "ner_manual"})
        marked = {"start": start, "end": end, "label": "LOC"}
        place.append({"text": other, "spans": [marked], "answer": "accept", "_view_id": "ner_manual"})
    done = merge_folder(tmp_path, {"prodigy/person.jsonl": jsonl(person), "prodigy/place.jsonl": jsonl(place)})
    assert (done.status, done.entities) == (0, {"PER": 60, "LOC": 60})
    differing = sum(one["text"] != other["text"] for one, other in zip(person, place, strict=True))
    assert (sum(done.ledger["texts"].values()), done.ledger["same_texts"]) == (60, differing)
    assert f"Texts that differ only in white space or Unicode composition: {differing} joined" in done.printed


@pytest.mark.parametrize(
    ("correct", "shown"),
    [
        (lambda text: text.replace("wrote", "wrotte"), "wrot[]e from"),
        (lambda text: text.replace("moved", "mowed"), "mo[v]ed to"),
        (lambda text: text.replace("wrote", "worte"), "w[ro]te from"),
        (lambda text: text.replace("wrote", "wirte"), None),
        (lambda text: text[:-2], None),
        (lambda text: text.replace("19", "18", 1), None),
    ],
    ids=["inserted", "replaced", "swapped", "two replaced", "two at the end", "a digit"],
)
def test_texts_that_were_corrected_in_one_data_set_are_told_of(tmp_path, correct, shown):
    rows = [{"text": sentence.text, "spans": sentence.objects()[:1], "answer": "accept"} for sentence in sentences()]
    others = []
    for row in rows:
        text = correct(row["text"])
        word = text.split()[-3 if text.endswith(".") else -2]
        place = {"start": text.index(word), "end": text.index(word) + len(word), "label": "LOC"}
        others.append({**row, "text": text, "spans": [place]})
    files = {"prodigy/person.jsonl": jsonl(rows), "prodigy/place.jsonl": jsonl(others)}
    done = merge_folder(tmp_path, files)
    differ = sum(one["text"] != other["text"] for one, other in zip(rows, others, strict=True))
    message = f"{differ} texts of 'person' and 'place' differ by one edit"
    assert done.status == 0
    assert differ > 3
    assert (message in done.said) == bool(shown)
    assert done.printed.count(str(shown)) == (differ if shown else 0), done.printed
    again = merge_folder(tmp_path / "one", {"prodigy/all.jsonl": jsonl([*rows, *others])})
    assert "differ by one character" not in again.printed, "its annotators had both"
