"""A document that nobody has changed since it was predicted isn't gold; it is in a list, which can be deleted."""

import pytest

from labelwise.errors import InputError
from labelwise.evaluate.predictions import PredictedDoc, write_predictions
from labelwise.export.run import export
from labelwise.sources.brat import PREDICTED as LIST
from labelwise.sources.convert_brat import convert_brat


@pytest.fixture
def folder(tmp_path):
    """A brat folder with two predicted documents, the second of which somebody has changed."""
    docs = [PredictedDoc(name * 24, f"{name} cat", [(2, 5, "A")], [], doc=f"sub/{name}.txt") for name in "12"]
    with (tmp_path / "raw.jsonl").open("wb") as file:
        write_predictions(docs, file)
    export(tmp_path / "raw.jsonl", tmp_path / "brat" / "batch", "brat")
    with (tmp_path / "brat" / "batch" / "sub" / "2.ann").open("a") as file:
        file.write("T2\tB 0 1\t2\n")
    return tmp_path / "brat"


def test_the_converter_counts_it_and_refuses_it_strictly(folder, tmp_path):
    report = convert_brat(folder, tmp_path / "tasks")
    assert report.documents == {"converted": 1, "prediction": 1}
    assert report.annotations == {"converted": 2, "prediction": 1}
    with pytest.raises(InputError, match=r"batch/sub/1\.ann:0 \(prediction\)"):
        convert_brat(folder, tmp_path / "tasks", strict=True)
    (folder / "batch" / LIST).unlink()
    assert convert_brat(folder, tmp_path / "tasks", strict=True).documents == {"converted": 2}


def test_a_label_of_predictions_alone_is_none_of_the_corpus(folder, tmp_path):
    """Else all other documents would be complete for it, without a span."""
    (folder / "batch" / "sub" / "2.ann").write_text("T2\tB 0 1\t2\n")
    assert convert_brat(folder, tmp_path / "tasks").labels == {"B": 1}
    (folder / "batch" / LIST).unlink()
    assert convert_brat(folder, tmp_path / "tasks").labels == {"A": 1, "B": 1}


def test_a_list_that_is_none_is_named(folder, tmp_path):
    (folder / "batch" / LIST).write_text("{oops")
    with pytest.raises(InputError, match=r"batch/PREDICTED\.json: not a list of predictions .* or delete it"):
        convert_brat(folder, tmp_path / "tasks")
