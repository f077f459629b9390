import pytest

from labelwise.base.errors import InputError
from labelwise.corpus.tasks import input_hash, task_hash
from labelwise.export.export_corpus import export_review
from labelwise.merge.rules.policies import Policies
from scripts.export import export_cli
from tests.conftest import Merging, call, read_jsonl, task

ANN, BOB = {"_annotator_id": "ann"}, {"_annotator_id": "bob"}
TEXT = "Add 5 mL now"


@pytest.fixture
def merged(merging) -> Merging:
    """A text with a nested span in one of two datasets, and one on which two people disagree."""
    doc = {"meta": {"doc": "p1.txt"}}
    merging.add("device", ["Device"], [task("Wait"), task(TEXT, (4, 8, "Device"), **doc)])
    merging.add("volume", ["Volume"], [task(TEXT, (6, 8, "Volume"), (9, 11, "Volume"), **ANN)])
    merging.add("copy", ["Device"], [task(TEXT, (4, 8, "Device"), **ANN)])
    merging.add("two", ["Cat"], [task("big cat", (4, 7, "Cat"), **ANN), task("big cat", (0, 7, "Cat"), **BOB)])
    merging.add("same", ["Cat"], [task("old cat", (4, 7, "Cat"), **person) for person in (ANN, BOB)])
    return merging


def test_a_dropped_span_is_a_task_with_the_kept_span_and_sources(merged, tmp_path):
    merged.run(dev_ratio=0, test_ratio=0, docs_per_partition=1, policies=Policies(annotators="union"))
    done = export_review(tmp_path / "corpus", tmp_path / "out", dropped=True)
    assert (done.tasks, done.without_text) == ({"dropped_spans.jsonl": 3}, 0)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"export.json", "dropped_spans.jsonl"}
    tasks = {(row["text"], row["meta"]["reason"]): row for row in read_jsonl(tmp_path / "out/dropped_spans.jsonl")}
    nested = tasks[TEXT, "nested"]
    lost = {"start": 6, "end": 8, "label": "Volume", "claim": "accept", "datasets": ["volume"], "dropped": True}
    kept = {
        "start": 4,
        "end": 8,
        "label": "Device",
        "claim": "accept",
        "datasets": ["copy", "device"],
        "dropped": False,
    }
    tokens = nested.pop("tokens")
    assert [(token["id"], token["text"]) for token in tokens] == [(0, "Add"), (1, "5"), (2, "mL"), (3, "now")]
    for span, first in zip(nested["spans"], (2, 1), strict=True):
        assert (span.pop("token_start"), span.pop("token_end")) == (first, 2)
    assert nested == {
        "text": TEXT,
        "_input_hash": input_hash(TEXT),
        "_task_hash": task_hash(input_hash(TEXT), [lost, kept]),
        "spans": [lost, kept],
        "_view_id": "spans_manual",  # there spans may overlap
        "meta": {
            "reason": "nested",
            "learned": True,
            "doc": "p1.txt",
            "from": "volume.jsonl:1, device.jsonl:2, copy.jsonl:1",
            "predicted": "yes",
        },
        "_labelwise_uncovered": {"Device": "none", "Volume": "none", "Cat": "none"},
    }
    cut = tasks[TEXT, "misaligned"]
    assert [span["dropped"] for span in cut["spans"]] == [True]
    assert [token["text"] for token in cut["tokens"]] == ["Add", "5", "mL", "no", "w"], (
        "or Prodigy would refuse the span"
    )
    assert cut["meta"] == {"reason": "misaligned", "doc": "p1.txt", "from": "volume.jsonl:1", "predicted": "yes"}


def test_a_disagreement_is_a_task_per_label(merged, tmp_path):
    merged.run(dev_ratio=0, test_ratio=0)
    done = export_review(tmp_path / "corpus", tmp_path / "out", disagreements=True)
    assert done.tasks == {"disagreements.jsonl": 1}
    [first] = read_jsonl(tmp_path / "out/disagreements.jsonl")
    assert first["text"] == "big cat"
    assert [(span["start"], span["label"], span["annotators"]) for span in first["spans"]] == [
        (0, "Cat", ["bob"]),
        (4, "Cat", ["ann"]),
    ]
    places = "two.jsonl:1, two.jsonl:2"
    assert first["meta"] == {"label": "Cat", "annotators": "ann, bob", "from": places, "predicted": "yes"}
    shown = [{key: value for key, value in span.items() if "token" not in key} for span in first["spans"]]
    assert first["_task_hash"] == task_hash(first["_input_hash"], shown)


def outvoted_in(merging: Merging) -> list[int]:
    """Return the numbers of outvoted spans in a merge's warnings."""
    return [check.n for check in merging.run().checks if check.kind == "outvoted spans"]


def answered(path, kept, **more):
    """Return a file's tasks as Prodigy saves them, with the spans to keep."""
    saved = {"_view_id": "ner_manual", "answer": "accept", "_timestamp": 9, **more}
    return [row | saved | {"spans": [span for span in row["spans"] if kept(span)]} for row in read_jsonl(path)]


def entities(merged):
    return {text: [str(span) for span in doc.ents] for text, (_, doc) in merged.docs().items()}


def test_an_answer_to_a_disagreement_decides_alone_about_its_label(merged, tmp_path):
    """Bob marked two cats that Ann didn't; she takes both back in one text. Her answer says nothing about Dog."""
    text = "a cat and a cat and a dog"
    merged.add("ann", ["Cat", "Dog"], [task(text, (22, 25, "Dog"), **ANN)])
    merged.add("bob", ["Cat", "Dog"], [task(text, (2, 5, "Cat"), (12, 15, "Cat"), (22, 25, "Dog"), **BOB)])
    before = merged.run(dev_ratio=0, test_ratio=0)
    assert entities(merged)[text] == ["cat", "cat", "dog"]
    export_review(tmp_path / "corpus", tmp_path / "out", disagreements=True)
    exported = tmp_path / "out/disagreements.jsonl"

    merged.add("settled", ["Cat", "Dog"], read_jsonl(exported))
    assert merged.run(dev_ratio=0, test_ratio=0).rows["prediction"] == 2, "nobody has answered"
    assert entities(merged)[text] == ["cat", "cat", "dog"]

    rows = answered(exported, lambda span: span["annotators"] != ["bob"], **ANN)
    merged.declared.pop()
    merged.add("settled", ["Cat", "Dog"], rows)
    after = merged.run(dev_ratio=0, test_ratio=0)
    assert entities(merged)[text] == ["dog"]
    assert (after.problems, after.agreement) == (0, before.agreement)
    assert export_review(tmp_path / "corpus", tmp_path / "out", disagreements=True).tasks == {"disagreements.jsonl": 0}


def test_after_disagreements_are_settled_nothing_is_left_to_export(merging):
    for name, who in (("ann", ANN), ("bob", BOB), ("cy", {"_annotator_id": "cy"})):
        spans = [(0, 3)] if name == "ann" else []
        merging.add(name, ["A"], [task(f"cat {n}", *spans, **who) for n in range(2)])
    dee = {"_view_id": "review", "view_id": "ner_manual", "_annotator_id": "dee"}
    reviews = [task(f"cat {n}", **dee) for n in range(2)]
    for settled in range(3):
        merging.add("settled", ["A"], reviews[:settled])
        said = outvoted_in(merging)
        merging.declared.pop()
        unsettled = 2 - settled
        exported = export_review(merging.root / "corpus", merging.root / "out", disagreements=True)
        assert exported.tasks == {"disagreements.jsonl": unsettled}
        assert said == ([unsettled] if unsettled else [])
    assert merging.run().spans["outvoted"] == 2, "as before a review"


def test_an_answer_to_a_lost_span_takes_no_other_span_away(merged, tmp_path):
    merged.run(dev_ratio=0, test_ratio=0)
    before = {name: [*doc.ents] for name, (_, doc) in merged.docs().items()}
    export_review(tmp_path / "corpus", tmp_path / "out", dropped=True)
    merged.add("saved", ["Volume", "Device"], answered(tmp_path / "out/dropped_spans.jsonl", lambda span: True, **ANN))
    ledger = merged.run(dev_ratio=0, test_ratio=0)
    assert {name: [*map(str, doc.ents)] for name, (_, doc) in merged.docs().items()} == {
        name: [*map(str, spans)] for name, spans in before.items()
    }
    assert (ledger.rows["superseded"], ledger.spans["invalid"]) == (0, 3)


def test_the_command_writes_both_of_a_split_and_says_what_has_no_text(merged, tmp_path):
    merged.add("three", ["Cat"], [task("big cat", (0, 3, "Cat"), _annotator_id="cy")])
    merged.run(dev_ratio=0, test_ratio=0, policies=Policies(coverage="drop"))
    options = [merged.root / "corpus", merged.root / "out", "--format", "prodigy", "--dropped", "--disagreements"]
    printed = call(export_cli, *options)
    assert printed.count("0 tasks:") == 2
    assert "1 text left out: the corpus doesn't have them" in printed
    merged.run(dev_ratio=0, test_ratio=0)
    call(export_cli, *options, "--splits", "test,dev")
    assert [(merged.root / "out" / name).read_bytes() for name in ("dropped_spans.jsonl", "disagreements.jsonl")] == [
        b""
    ] * 2
    call(export_cli, *options, "--splits", "train,dev")
    assert len(read_jsonl(merged.root / "out/dropped_spans.jsonl")) == 4


def test_another_source_and_another_format_are_errors_that_say_what_to_do(merged, tmp_path):
    merged.run()
    corpus = tmp_path / "corpus"
    for options in (["--dropped"], ["--disagreements", "--format", "doccano"]):
        assert "give --format prodigy" in " ".join(
            call(export_cli, corpus, tmp_path / "out", *options, status=1).split()
        )
    with pytest.raises(InputError, match="tasks: not a merged corpus"):
        export_review(tmp_path / "tasks", tmp_path / "out", dropped=True)
    with pytest.raises(InputError, match="there is no split 'tests'"):
        export_review(corpus, tmp_path / "out", ["tests"], dropped=True)
    with pytest.raises(InputError, match="export"):
        export_review(corpus, tmp_path, dropped=True)
