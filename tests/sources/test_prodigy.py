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
