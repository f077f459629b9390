import json

import pytest

from labelwise.corpus.tasks import input_hash, task_hash
from labelwise.sources.prodigy import kind_of, parse_task
from tests.conftest import real_corpus


@pytest.mark.parametrize("file", ["fashion_brands_eval.jsonl", "fashion_brands_training.jsonl", "food_data.jsonl"])
def test_input_hash_is_prodigys(file):
    tasks = [json.loads(line) for line in (real_corpus("prodigy_jsonl") / file).open()]
    assert [input_hash(task["text"]) for task in tasks] == [task["_input_hash"] for task in tasks]


def test_hashes_of_one_public_task():
    """What Prodigy itself wrote for a text of one word without spans."""
    assert input_hash("Ewww") == -224066023
    assert task_hash(-224066023, []) == 92112113


def murmur3(data: bytes) -> int:
    """MurmurHash3 x86 32 with seed 0, signed, after its description."""
    mask, state = 0xFFFFFFFF, 0
    for start in range(0, len(data), 4):
        block = data[start : start + 4]
        k = int.from_bytes(block, "little") * 0xCC9E2D51 & mask
        k = (k << 15 | k >> 17) * 0x1B873593 & mask
        state ^= k
        if len(block) == 4:
            state = ((state << 13 | state >> 19) * 5 + 0xE6546B64) & mask
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & mask
    state = (state ^ state >> 13) * 0xC2B2AE35 & mask
    state ^= state >> 16
    return state - 2**32 if state >= 2**31 else state


@pytest.mark.parametrize("text", ["5 \xb5L/min <b>", 'a"b\\c/d\té\U0001f600', "x"])
def test_input_hash_is_murmur3_of_the_escaped_text(text):
    assert input_hash(text) == murmur3(b"text=" + json.dumps(text).encode())


def test_task_hash_is_murmur3_of_input_hash_and_spans_with_sorted_keys():
    data = b'-224066023spans=[{"end":8,"label":"Amount-Unit","start":4}]'
    assert task_hash(-224066023, [{"start": 4, "end": 8, "label": "Amount-Unit"}]) == murmur3(data)


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        ({"_view_id": "ner_manual"}, "complete"),
        ({"_view_id": "spans_manual"}, "complete"),
        ({"_view_id": "blocks"}, "complete"),
        ({"_view_id": "ner"}, "binary"),
        ({"_view_id": "review", "view_id": "ner"}, "binary"),
        ({"_view_id": "review", "view_id": "ner_manual", "versions": [{"text": "b"}]}, "complete"),
        ({"_view_id": "ner_manual", "_is_binary": True}, "binary"),
        ({"_view_id": "ner", "_is_binary": False}, "complete"),
        ({"_view_id": "ner", "no_missing": True}, "complete"),
        ({"spans": [{"start": 0, "end": 1, "label": "X", "answer": "accept"}]}, "binary"),
        ({"spans": [{"start": 0, "end": 1, "label": "X"}]}, "complete"),
        ({}, "complete"),
        ({"_view_id": "classification"}, "other"),
        ({"_view_id": "relations", "_is_binary": False}, "other"),
        ({"_view_id": 3}, "other"),
    ],
)
def test_kind_of_a_task(task, kind):
    assert kind_of(parse_task(json.dumps({"text": "a", **task}))[0]) == kind


def test_what_is_not_needed_is_not_decoded():
    """Tokens may be anything, also what no tokenizer writes."""
    task, _ = parse_task('{"text": "a", "tokens": [{"id": null}, 3], "spans": [{"token_end": "x"}], "html": 1}')
    assert task.text == "a"
