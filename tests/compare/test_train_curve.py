import json
import shutil

import pytest
from msgspec.json import encode

from labelwise.base.errors import InputError
from labelwise.compare.train_curve import measure_curve, read_train_curve
from labelwise.evaluate.predictions import PredictedDoc
from labelwise.evaluate.tables import Tables
from labelwise.train.config import fit_config, share_of
from labelwise.train.training_config import TrainingConfig
from scripts.train_curve import train_curve_cli
from tests.conftest import Merging, call, task
from tests.evaluate.written import write_rows
from tests.train.training import CPU

A, B = (0, 3, "A"), (4, 7, "B")
TEXTS = {"half": 50, "a quarter": 25, "all": 100}


def curve_of(tmp_path, docs=20, units=0, **right):
    tables = {}
    for share, n in right.items():
        made = [
            PredictedDoc(
                f"{number:02}",
                "abc def",
                [A] * (number < n) + [B] * (n >= 0),
                [A, B],
                unit=f"unit {number % units}" if units else "",
            )
            for number in range(docs)
        ]
        folder = tmp_path / share
        folder.mkdir(exist_ok=True)
        tables[share.replace("_", " ")] = Tables.of(folder)
        write_rows(((doc, {}) for doc in made), "dev", ["A", "B"], Tables.of(folder))
    return measure_curve(tables, TEXTS, ["A", "B"], "of all")


def test_the_gain_is_that_of_the_last_doubling(tmp_path):
    curve = curve_of(tmp_path, half=5, a_quarter=0, all=15)
    f = {
        share: pytest.approx(2 * (20 + n) / (20 + n + 40)) for share, n in (("half", 5), ("a quarter", 0), ("all", 15))
    }
    assert curve.micro.f == f
    assert curve.micro.changes["all"].difference == pytest.approx(70 / 75 - 50 / 65)
    assert curve.micro.changes["all"].low < curve.micro.changes["all"].difference < curve.micro.changes["all"].high
    assert [(label, round(gain.difference, 3)) for label, gain in curve.gains()] == [("A", round(30 / 35 - 10 / 25, 3))]
    assert curve.describe().startswith("Twice the training texts should add about 0.164 to F1 on dev (+0.")
    assert curve.describe().endswith("the last doubling took it from 0.769 to 0.933, one training each")


@pytest.mark.parametrize("units", [4, 5])
def test_documents_are_the_units_of_dev(tmp_path, units):
    change = curve_of(tmp_path, units=units, half=5, all=15).micro.changes["all"]
    assert (change.low is None) == (units < 5)


@pytest.mark.parametrize(
    ("docs", "right", "message"),
    [
        (20, {"half": 10, "a_quarter": 0, "all": 11}, "Twice the training texts may add nothing to F1 on dev: "),
        (20, {"half": 15, "a_quarter": 0, "all": 5}, "Twice the training texts may add nothing to F1 on dev: "),
        (4, {"half": 0, "a_quarter": 0, "all": 4}, "The gain from doubling the texts isn't known: "),
    ],
)
def test_an_insignificant_gain_is_not_promised(tmp_path, docs, right, message):
    curve = curve_of(tmp_path, docs, **right)
    assert curve.describe().startswith(message)
    assert curve.gains() == []


def test_a_curve_is_of_one_pipeline(tmp_path):
    curve = curve_of(tmp_path, half=5, a_quarter=0, all=15)
    file = tmp_path / "curve.json"
    assert read_train_curve(file, "of all") is None
    file.write_bytes(encode(curve))
    assert read_train_curve(file, "of all") == curve
    assert read_train_curve(file, "of another") is None
    file.write_text(json.dumps({"texts": 3}))
    with pytest.raises(InputError, match=r"curve\.json: not a learning curve \(.*\); run train-curve again"):
        read_train_curve(file, "of all")


@pytest.mark.parametrize(("more", "expected"), [(0, (500, 0.4)), (200, (500, 0.1))], ids=["few words", "many words"])
def test_a_share_of_train_has_the_batches_and_the_dropout_of_the_whole(more, expected, tmp_path):
    merging = Merging(tmp_path)
    merging.add("a", ["A"], [task(f"cat {n} sat{' down' * more}", (0, 3)) for n in range(60)])
    merging.run(dev_ratio=0.1, test_ratio=0)
    whole = TrainingConfig(CPU, tmp_path / "corpus")
    half = share_of(whole, 20)
    assert half.limit == 20
    for one in (whole, half):
        training = fit_config(one).settings["training"]
        assert (training["batcher"]["size"], training["dropout"]) == expected
    with pytest.raises(InputError, match="so a share of them would be empty"):
        share_of(whole, 0)


def test_three_texts_are_refused_before_anything_is_trained(tmp_path, monkeypatch):
    merging = Merging(tmp_path)
    merging.add("a", ["A"], [task(f"cat {n} sat", (0, 3)) for n in range(3)])
    merging.run(dev_ratio=0, test_ratio=0)
    (tmp_path / "configs").mkdir()
    shutil.copy(CPU, tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    printed = call(train_curve_cli, "cpu", status=1)
    assert "train has 3 texts, so a share of them would be empty" in printed
    assert "Training on" not in printed
