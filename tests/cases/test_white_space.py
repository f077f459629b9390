"""Exports of the same texts that differ in white space: case 19, and others of its kind."""

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
