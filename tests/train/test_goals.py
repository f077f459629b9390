import json

import pytest
import spacy
from spacy.language import Language
from thinc.api import Config

from labelwise.base.errors import InputError
from labelwise.base.files import list_digests
from labelwise.corpus.record import find_edited
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.train.config import fit_config
from labelwise.train.goals import describe_points
from labelwise.train.training_config import TrainingConfig
from tests.conftest import task
from tests.train.test_config import own
from tests.train.training import CPU, NER, STEPS, files, train_in

SHORT = STEPS
STEPS = {**STEPS, "training.max_steps": 60, "training.eval_frequency": 30, "training.optimizer.learn_rate": 0.005}


def with_goals(folder, **goals):
    """Return a config with goals, always of the same name."""
    folder.mkdir(exist_ok=True, parents=True)
    return own(folder, CPU, **{f"labelwise__{figure}": goal for figure, goal in goals.items()})


def test_another_goal_takes_no_step_and_ends_with_the_same_bytes(demo_corpus, tmp_path, monkeypatch):
    goals = {"recall": {"PERSON": 0.7}, "precision": 0.4}
    config = with_goals(tmp_path / "config", **goals)
    fresh = train_in(tmp_path / "fresh", demo_corpus, STEPS, config)
    first: dict[str, bytes] = {}
    for options in ({"config": CPU}, {"config": config}, {"config": CPU}):
        result = train_in(tmp_path / "kept", demo_corpus, STEPS, resume=True, **options)
        files_before = files(tmp_path / "kept")
        if options["config"] is config:
            assert files_before == files(tmp_path / "fresh")
            assert result.resumed == 60
            saved = Config().from_disk(tmp_path / "kept/model/config.cfg")["labelwise"]
            assert not saved.keys() & goals.keys(), "they are the recognizer's, whatever a label is called"
        else:
            first = first if result.resumed else files_before
            assert files_before == first
        assert find_edited(tmp_path / "kept/model", list_digests(tmp_path / "kept/model")) == []
        monkeypatch.setattr(Language, "update", lambda *args, **options: pytest.fail("a step was taken"))
    with pytest.raises(pytest.fail.Exception, match="a step was taken"):
        train_in(tmp_path / "kept", demo_corpus, STEPS, CPU, resume=True)
    points = json.loads((tmp_path / "fresh/model/ner/cfg").read_text())["points"]
    assert {label for label, point in points.items() if point["figure"] == "recall"} == {"PERSON"}
    assert fresh.points == points
    nlp = spacy.load(tmp_path / "fresh/model")
    assert points.keys() == {*nlp.get_pipe("ner").labels}
    metrics = evaluate_pipeline(tmp_path / "fresh/model", demo_corpus / "test", dev=demo_corpus / "dev").metrics
    for scores in (metrics, metrics.dev):
        for label, aimed in scores.goals.items():
            row, point = scores.all_gold.labels[label], points[label]
            assert aimed.value == pytest.approx(row.r if point["figure"] == "recall" else row.p, nan_ok=True)
            goal = goals["recall"]["PERSON"] if label == "PERSON" else goals["precision"]
            assert (aimed.figure, aimed.goal) == (point["figure"], goal), "as it was written"
            assert aimed.low is None or 0 <= aimed.low <= aimed.value <= aimed.high <= 1
    reached = {label for label, point in points.items() if point["bound"] >= point["goal"]}
    assert reached
    shared = [*points.values()]  # by labels with few spans, whose bound is that of all of them
    alone = [label for label in reached if shared.count(points[label]) == 1]
    assert all(metrics.dev.goals[label].value >= points[label]["goal"] - 0.03 for label in alone)
    plain = evaluate_pipeline(tmp_path / "kept/model", demo_corpus / "test", tmp_path / "plain.json").metrics
    assert plain.goals == {}
    assert "aimed" not in json.loads((tmp_path / "plain.json").read_text())
    assert metrics.all_gold.labels["PERSON"].r >= plain.all_gold.labels["PERSON"].r


@pytest.mark.parametrize("labels", [["PER:SON", "#PERSON", "rate", "size", "PER=SON"]], ids=str)
def test_a_goal_of_a_label_that_spacy_would_cut_or_that_is_a_keys_name_is_kept(labels, merging):
    """spaCy writes goals as a block, and reads it again: `PER:SON = 0.9` is the key PER there."""
    spans = [(5 * number, 5 * number + 4, label) for number, label in enumerate(labels)]
    merging.add("tasks", labels, [task(f"Anna came into this room {number}", *spans) for number in range(40)])
    merging.run(dev_ratio=0.2, test_ratio=0.2, near_duplicates="off")
    config = merging.root / "own.cfg"
    goals = json.dumps(dict.fromkeys(labels, 0.9))
    config.write_text(CPU.read_text().replace("[labelwise]\n", f"[labelwise]\nprecision = {goals}\n"))
    trained = train_in(merging.root / "out", merging.root / "corpus", SHORT, config)
    points = {label: (one["figure"], one["goal"]) for label, one in trained.points.items()}
    assert points == dict.fromkeys(labels, ("precision", 0.9))
    assert spacy.load(merging.root / "out/model").get_pipe("ner").cfg["points"].keys() == points.keys()


@pytest.mark.parametrize(("own_goal", "for_all"), [("precision", "recall"), ("recall", "precision")])
def test_a_labels_own_goal_overrides_the_goal_for_all(own_goal, for_all, demo_corpus, tmp_path):
    config = with_goals(tmp_path / "config", **{own_goal: {"PERSON": 0.9}, for_all: 0.8})
    goals = fit_config(TrainingConfig(config, demo_corpus)).goals
    assert goals.pop("PERSON") == (own_goal, 0.9)
    assert {*goals.values()} == {(for_all, 0.8)}


def test_a_label_that_spacy_cuts_is_refused_with_the_way_to_write_it(demo_corpus, tmp_path):
    (tmp_path / "own.cfg").write_text(CPU.read_text().replace("[nlp]\n", "[labelwise.recall]\nPER:SON = 0.9\n[nlp]\n"))
    said = r'own\.cfg:\d+: \[labelwise\.recall\]: .* as in recall = \{"PERSON": 0\.98\}$'
    with pytest.raises(InputError, match=said):
        fit_config(TrainingConfig(tmp_path / "own.cfg", demo_corpus))


@pytest.mark.parametrize(
    ("source", "goals", "message"),
    [
        (CPU, {"precision": 95}, r"own\.cfg:\d+: \[labelwise\] precision = 95: .*; correct it"),
        (CPU, {"recall": {"PERSON": 1.5}}, r"\[labelwise.*recall.*; correct it"),
        (CPU, {"recall": {"NOSUCH": 0.9}}, r"the corpus has no 'NOSUCH', but .*PERSON.*; correct it"),
        (CPU, {"recall": 0.9, "precision": 0.9}, "has a goal of precision, too; give each label one goal"),
        (CPU, {"recall": {"PERSON": 0.9}, "precision": {"PERSON": 0.9}}, "PERSON has a goal of precision, too"),
        (NER, {"recall": 0.9}, 'goals need .*factory = "per_label"; delete the key'),
    ],
)
def test_a_goal_that_no_label_can_have_is_refused_with_its_line(source, goals, message, demo_corpus, tmp_path):
    config = own(tmp_path, source, labelwise={**Config().from_disk(source).get("labelwise", {}), **goals})
    with pytest.raises(InputError, match=message):
        fit_config(TrainingConfig(config, demo_corpus))


def test_goals_that_dev_reaches_and_those_that_it_cannot_are_said_with_their_labels():
    reached = {"figure": "precision", "goal": 0.9, "least": 0.75, "bound": 0.9}
    missed = {"figure": "recall", "goal": 0.9, "least": 0.0, "bound": 0.85}
    assert [*describe_points({"A": reached, "B": missed, "C": reached})] == [
        ("A, C: precision 0.9 is reached on dev: at least 0.900, by entities of probability 0.750 or more", ""),
        ("B: recall 0.9 can't be reached on dev; at best 0.850", "Annotate more texts, or lower the goal"),
    ]
