"""What goes to a tool and comes back is what it was, but for what somebody has changed there.

`recorded` has what Label Studio 1.23.2 and doccano 1.8.4 exported after they had imported these texts, and one span had
been deleted. The client that recorded them is in commit 1a823cc, `tests/export/tools.py`.
"""

import shutil
from pathlib import Path

import pytest

from labelwise.corpus.ledger import Ledger
from labelwise.export.run import export
from labelwise.export.source import read_corpus
from tests.conftest import Merging, read_jsonl, task, write_jsonl
from tests.export.test_export import write_predicted

RECORDED = Path(__file__).parent / "recorded"
FILES = {"label-studio": "label_studio_{}.json", "doccano": "doccano_{}.jsonl"}
LABELS = ("Amount", "Time span", "Vessel & lid")
# Name, text, and forms of each label; None where nobody has looked for it. One form is in another.
TEXTS = (
    ("lab/1.txt", "Add 5 mL 😀 to the lid of a 2 mL tube.\r\nWait for 1 h. ", ["5 mL", "2 mL"], ["1 h"], ["2 mL tube"]),
    ("lab/2.txt", "Für 3 h bei 37 °C schütteln.", [], ["3 h"], []),
    ("", "Nothing is measured here.", [], [], []),
    ("lab/4.txt", "Spin 1 mL for 90 s.", ["1 mL"], ["90 s"], None),
)
CHANGED = TEXTS[1][1]  # whose span is deleted in the tool
Texts = dict[str, tuple[str, list, dict]]


def spans_of(text: str, forms: tuple[list[str] | None, ...]) -> list[tuple[int, int, str]]:
    pairs = [(form, label) for label, found in zip(LABELS, forms, strict=True) for form in found or ()]
    return sorted((text.index(form), text.index(form) + len(form), label) for form, label in pairs)


def texts_of(corpus: Path) -> Texts:
    """Name, spans, and the labels that it isn't complete for, of each text."""
    return {doc.text: (doc.name, doc.spans, doc.unknown) for doc in read_corpus(corpus)}


def merge_back(folder: Path, exported: Path) -> tuple[Ledger, Texts]:
    """Merge what a tool has exported."""
    back = Merging(folder)
    back.add("back", list(LABELS), [])
    back.declared[0]["path"] = exported.name
    back.add("other", ["Amount"], [{"text": "another text"}])
    shutil.copy(exported, folder / "tasks" / exported.name)
    ledger = back.run()
    texts = texts_of(folder / "corpus")
    del texts["another text"]
    return ledger, texts


@pytest.mark.parametrize("format", FILES)
def test_a_corpus_comes_back_with_one_change(format, merging, tmp_path):
    for number, label in enumerate(LABELS):
        rows = []
        for name, text, *forms in TEXTS:
            found = [span for span in spans_of(text, tuple(forms)) if span[2] == label]
            if forms[number] is not None:
                rows.append(task(text, *found, meta={"doc": name} if name else {}))
        merging.add(str(number), [label], rows)
    merging.run()
    before = texts_of(merging.root / "corpus")
    exported = RECORDED / FILES[format].format("gold")
    ledger, after = merge_back(tmp_path / "back", exported)
    assert ledger.rows == {"merged": 5}
    assert '"ground_truth": true' not in exported.read_text(encoding="utf8"), "it would win over all other answers"
    assert before[CHANGED][1] == [(4, 7, "Time span")]
    for text, (name, spans, unknown) in before.items():
        # Label Studio and doccano give each text a number, which names a text that has no name.
        assert after[text] == (name or after[text][0], [] if text == CHANGED else spans, unknown)
    assert [doc[2] for doc in after.values() if doc[2]] == [{"Vessel & lid": "none"}]


@pytest.mark.parametrize("format", FILES)
def test_of_predictions_only_what_somebody_has_changed_comes_back(format, tmp_path):
    exported = RECORDED / FILES[format].format("predicted")
    ledger, after = merge_back(tmp_path / "back", exported)
    assert after == {CHANGED: ("lab/2.txt", [], {})}
    # Label Studio exports what somebody has submitted; in doccano, what is imported is annotated.
    assert ledger.rows == {"merged": 2} | ({"prediction": 3} if format == "doccano" else {})
    if format == "doccano":
        rows = read_jsonl(exported)
        accepted = [{key: value for key, value in row.items() if key != "predicted"} for row in rows]
        write_jsonl(tmp_path / "accepted.jsonl", accepted)
        assert merge_back(tmp_path / "accepted", tmp_path / "accepted.jsonl")[0].rows == {"merged": 5}


@pytest.mark.parametrize("format", [*FILES, "prodigy"])
def test_an_export_is_no_annotation_before_a_tool_has_had_it(format, tmp_path):
    docs = {text: [(*span, 0.6) for span in spans_of(text, tuple(forms))] for _, text, *forms in TEXTS}
    export(write_predicted(tmp_path / "raw.jsonl", docs, LABELS), tmp_path / "out", format)
    (file,) = (tmp_path / "out").glob("[at]*.json*")
    ledger, after = merge_back(tmp_path / "back", file)
    why = "not annotated" if format == "label-studio" else "prediction"
    assert (ledger.rows, after) == ({"merged": 1, why: 4}, {})
    assert ledger.spans["in prediction task"] == ledger.spans_read == (0 if format == "label-studio" else 7)
    if format == "prodigy":  # which gives a time to what somebody saves
        saved = [{**row, "answer": "accept", "_timestamp": 1_790_000_000} for row in read_jsonl(file)]
        write_jsonl(tmp_path / "saved.jsonl", saved)
        assert merge_back(tmp_path / "saved", tmp_path / "saved.jsonl")[0].rows == {"merged": 5}
