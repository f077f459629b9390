import json
import shutil
import subprocess
from collections import Counter

import pytest

from labelwise.base.errors import InputError
from labelwise.compare.comparison import Change, ComparedScores
from labelwise.compare.train_curve import TrainCurve
from labelwise.corpus.ledger import Ledger
from labelwise.report.advice import FIX, PREDICT, Step
from labelwise.report.forecasts import (
    Forecast,
    bound_gain,
    forecast,
    measure_seconds,
    read_forecasts,
    say_hours,
    settle,
)
from labelwise.report.page import write_report
from scripts.report import report_cli
from tests.compare.test_revisions import Repository
from tests.conftest import ROOT, Merging, call, task
from tests.report.report_inputs import make_docs, write_results
from tests.report.test_advice import make_metrics, mistakes

FILE = "metrics/forecasts/cpu.jsonl"
TEXTS = Step("annotate more texts for A", PREDICT, 40, ("A",))
NAMES = ("ann@lab.example", "bob@lab.example")


def make(**fields):
    return Forecast(
        **{
            "pipeline": "p",
            "task": "texts",
            "label": "A",
            "asked": 100,
            "count": 100,
            "f1": 0.7,
            "interval": (-0.02, 0.1),
            "test": "one",
            **fields,
        }
    )


def results(**errors):
    metrics = make_metrics(**errors)
    metrics.pipeline_digest, metrics.split_digest = "q", "one"
    return metrics


def ledger(texts=100, decisions=0):
    complete = {"train": Counter(A=texts)}
    return Ledger(complete=complete, texts=Counter(train=texts), rows=Counter(corrected=decisions, merged=999))


def scored(f, low, high):
    change = Change(f, low, high)
    return ComparedScores({}, {"all": change})


@pytest.mark.parametrize(
    ("step", "count", "expected"),
    [
        # F1 from 120/160. Of 100 texts and 100 more, half of 40 missed spans are found: 160/180.
        (TEXTS, 100, (100, 0.75, None, -0.02, 0.1389)),
        (TEXTS, 300, (100, 0.75, None, -0.02, 0.0735)),  # a quarter
        (TEXTS, 40, (40, 0.75, None, -0.02, 0.1389)),
        # All spans: 160 of 200.
        (Step("in full", PREDICT, 40), 100, (100, 0.8889, None, -0.02, 0.0585)),
        # Half of 20 errors that 200 cases explain.
        (Step("review", FIX, 20, ("A",)), 0, (100, 0.75, None, -0.02, 0.0735)),
        (Step("review a sample", FIX), 0, (30, 0.8889, None, None, None)),
    ],
)
def test_without_a_curve_a_share_of_the_errors_is_the_bound(step, count, expected):
    metrics = results(A=mistakes(right=60, unseen=40), B=mistakes(right=100))
    metrics.all_gold.f = 0.8889
    gain = forecast(step, metrics, ledger(count), {"A": 200, "": 30}, None)
    low, high = gain.interval or (None, None)
    assert (gain.asked, gain.f1, gain.gain, low, high) == pytest.approx(expected, abs=1e-4)
    assert (gain.pipeline, gain.test, gain.by) == ("q", "one", "")


def test_a_bound_counts_both_sides_of_an_error():
    """From F1 120/160: 10 spurious spans go, 10 spans get their boundaries, and all errors go."""
    assert bound_gain([mistakes(right=60, spurious=40)], 10) == pytest.approx(120 / 150 - 0.75)
    assert bound_gain([mistakes(right=60, boundaries=20)], 10) == pytest.approx(70 / 80 - 0.75)
    assert bound_gain([mistakes(right=60, spurious=20, unseen=20)], 99) == pytest.approx(0.25)
    assert bound_gain([mistakes(right=0)], 9) == 0


def test_a_curve_gives_the_gain_of_a_doubling_in_part():
    metrics = results(A=mistakes(right=60, unseen=40))
    curve = TrainCurve(
        pipeline_digest="q", texts={"all": 300}, micro=scored(0.5, 0.4, 0.6), labels={"A": scored(0.05, 0.01, 0.08)}
    )
    gain = forecast(TEXTS, metrics, ledger(300), {}, curve)
    # log2(4 / 3) of it, and as wide as it was
    assert (gain.gain, *gain.interval) == pytest.approx((0.0208, -0.0192, 0.0508), abs=1e-4)
    assert gain.describe("about 2 hours") == "100 texts, about 2 hours; F1 of A +0.021, 95% interval -0.019 to +0.051"
    curve.labels["A"].changes["all"].low = None
    assert forecast(TEXTS, metrics, ledger(300), {}, curve).gain is None, "too few texts for an interval"


@pytest.mark.parametrize("step", [Step("split", "", 40, ("A",)), Step("a rule", FIX, 9, ("A", "B")), TEXTS])
def test_nothing_is_forecast_where_progress_is_not_counted(step):
    assert forecast(step, results(A=mistakes(right=60, unseen=40)), ledger(0), {"A": 9}, None) is None


OTHER = {"task": "decisions", "asked": 10, "count": 0}


@pytest.mark.parametrize(
    ("others", "merge", "test", "common", "outcome", "change"),
    [
        ([], ledger(149), "one", {}, "not followed", None),
        ([], ledger(150), "one", {}, "scored", 0.05),
        ([OTHER], ledger(150, 4), "one", {}, "scored", 0.05),
        ([OTHER], ledger(150, 5), "one", {}, "other advice was followed, too", None),
        ([OTHER | {"pipeline": "other"}], ledger(150, 5), "one", {}, "scored", 0.05),
        ([], ledger(150), "two", {}, "the test set has changed", None),
        ([], ledger(150), "two", {("p", "A"): 0.01, ("other", "A"): 0.02}, "scored", 0.01),
        ([], ledger(150), "two", {("other", "A"): 0.02, ("p", ""): 0.03}, "the test set has changed", None),
        ([], ledger(150), "", {}, "the test set has changed", None),
    ],
)
def test_a_forecast_is_scored_where_it_alone_was_followed_on_the_same_test_set(
    others, merge, test, common, outcome, change
):
    metrics = results(A=mistakes(right=60, unseen=40))  # F1 0.75
    metrics.split_digest = test
    before = make(test="" if not test else "one")
    scored = settle([before, *(make(**other) for other in others)], metrics, merge, common)
    assert (scored[0].outcome, scored[0].change, scored[0].by) == (outcome, pytest.approx(change), "q")
    assert scored[0].added == merge.complete["train"]["A"] - 100


def test_a_forecast_holds_within_its_interval():
    rows = [make(outcome="scored", change=change) for change in (-0.021, -0.02, 0.1, 0.11)]
    assert [row.held for row in rows] == [False, True, True, False]
    assert (make().held, make(change=0.05, interval=None).held) == (None, None)
    assert rows[2].describe_outcome() == "100 more texts of A: followed (0), F1 of A +0.100, forecast -0.020 to +0.100"
    other = make(task="decisions", outcome="other advice was followed, too", added=60)
    assert other.describe_outcome() == "100 decisions of A: followed (60), not scored: other advice was followed, too"


@pytest.fixture
def project(tmp_path):
    write_results(tmp_path, make_docs())
    (tmp_path / "metrics/small.json").touch()
    edit(tmp_path, pipeline_digest="p", split_digest="one")
    return tmp_path


def edit(root, file="cpu", **fields):
    path = root / f"metrics/{file}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def render(root, **options):
    write_report(root, "cpu", root / "report.html", **options)
    return (root / "report.html").read_text(encoding="utf8")


def test_a_pipelines_first_report_writes_its_forecasts_and_the_next_pipelines_what_came_of_them(project):
    edit(project, "merge", texts={"train": 100, "dev": 40, "test": 40})
    first = render(project)
    [row] = read_forecasts(project / FILE)
    assert (row.pipeline, row.task, row.label, row.asked, row.count) == ("p", "texts", "", 100, 100)
    assert f"(100 texts; F1 of all spans at most +{row.interval[1]:.3f})" in first
    assert 'id="outcomes"' not in first
    before = (project / FILE).read_bytes(), (project / FILE).stat().st_ino
    edit(project, "merge", texts={"train": 200})
    assert 'id="outcomes"' not in render(project, target_f1=0.7)
    assert ((project / FILE).read_bytes(), (project / FILE).stat().st_ino) == before, "of the same pipeline"

    edit(project, pipeline_digest="q")
    page = render(project)
    [old, new] = read_forecasts(project / FILE)
    assert (old.outcome, old.by, old.added, old.change, new.pipeline, new.by) == ("scored", "q", 100, 0.0, "q", "")
    pipelines = [json.loads(line)["pipeline"] for line in (project / FILE).read_text().splitlines()]
    assert pipelines == ["p", "q"], "sorted"
    assert "100 more texts: followed (100), F1 +0.000, forecast -0.020 to" in page
    assert "The intervals of forecasts held in 1 of 1." in page
    settled = (project / FILE).stat().st_ino
    assert render(project) == page
    assert (project / FILE).stat().st_ino == settled
    edit(project, pipeline_digest="r")
    page = render(project)
    assert "100 more texts: not followed (0)" in page
    assert "followed (100)" not in page, "another report's"


@pytest.mark.parametrize("broken", ["training", "digest", "seen"])
def test_a_blocked_pipeline_forecasts_nothing(project, broken):
    render(project)
    before = (project / FILE).read_bytes()
    edit(project, "merge", texts={"train": 999})
    if broken == "training":
        (project / "plots/cpu.tsv").write_text("step\tents_f\n" + "".join(f"{n}00\t0.01\n" for n in range(1, 9)))
        edit(project, "merge", gold={"dev": {"PERSON": 99}})
    seen = {"texts": 1, "f_without": 0.5} if broken == "seen" else {"texts": 0, "f_without": 0.5}
    edit(project, pipeline_digest="" if broken == "digest" else "q", seen=seen)
    render(project)
    assert (project / FILE).read_bytes() == before
    (project / FILE).unlink()
    render(project)
    assert not (project / FILE).exists()


def test_both_sides_of_a_merge_are_read(tmp_path):
    file = tmp_path / FILE

    def write(*rows):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def git(*command):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *command], cwd=tmp_path, check=True)

    base, done, mine, theirs = (
        {"pipeline": pipeline, "task": "texts", "label": "", "asked": 9, "count": 9, "test": "t"} for pipeline in "aabc"
    )
    done |= {"by": "b", "outcome": "not followed"}
    base["count"] = 8  # its line sorts before that of `done`
    shutil.copy(ROOT / ".gitattributes", tmp_path)
    write(base)
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "base")
    git("checkout", "-qb", "mine")
    write(done, mine)
    git("commit", "-qam", "mine")
    git("checkout", "-q", "main")
    write(base, theirs)
    git("commit", "-qam", "theirs")
    git("merge", "-q", "mine")
    assert [(row.pipeline, row.by) for row in read_forecasts(file)] == [("a", "b"), ("b", ""), ("c", "")]
    sides = [json.dumps(row) for row in (mine, done, base, base, theirs)]
    lines = ["<<<<<<< HEAD", *sides[:2], "||||||| 0123", sides[2], "=======", *sides[3:], ">>>>>>> main", ""]
    file.write_text("\n".join(lines))
    assert [(row.pipeline, row.by) for row in read_forecasts(file)] == [("a", "b"), ("b", ""), ("c", "")]
    file.write_text(f"{sides[0]}\n{{}}\n")
    with pytest.raises(InputError, match=r"cpu\.jsonl:2: not a forecast \(.*\); delete the line"):
        read_forecasts(file)


def annotate(root, *, timed=True, labels=("PERSON", "PLACE")):
    merging = Merging(root)
    rows = []
    for n in range(70):
        when = 1000.0 + 30 * n + 601 * (n >= 30) + 86_400 * (n == 69)
        more = {"_annotator_id": NAMES[n % 2], **({"_timestamp": when} if timed else {})}
        rows.append(task(f"Text number {n}", (0, 4, "PERSON"), **more))
    merging.add("a", [*labels], rows)
    merging.run(dev_ratio=0.0, test_ratio=0.0)


@pytest.mark.parametrize(("timed", "labels"), [(True, 5), (False, 5), (True, 2)])
def test_hours_are_those_of_the_answers_and_nothing_of_people_is_kept(project, timed, labels):
    (project / "training/check/findings.jsonl").unlink()
    every = [*json.loads((project / "metrics/merge.json").read_text())["labels"]]
    annotate(project, timed=timed, labels=["PERSON", *(item for item in every if item != "PERSON")][:labels])
    page, steps = render(project), [str(step) for step in write_report(project, "cpu", project / "cpu.html").tasks]
    # Each person answers once a minute; 100 texts in full.
    assert any("(100 texts, about 1.5 hours; F1 of all spans" in step for step in steps) == (timed and labels == 5)
    assert "hours" not in page
    assert ("about 1.5 hours" in render(project, annotators=True)) == (timed and labels == 5)
    stored = b"".join(path.read_bytes() for path in (project / "metrics").rglob("*") if path.is_file())
    assert (project / FILE).is_file()
    assert not any(word in stored for word in (b"lab.example", b"hours", b"seconds", b"60.0"))


def test_gaps_are_within_a_session_of_one_annotator(tmp_path):
    annotate(tmp_path)
    assert measure_seconds(tmp_path / "corpus") == {frozenset(["PERSON", "PLACE"]): 60.0}
    both, a, b, c = (frozenset(labels) for labels in ("AB", "A", "B", "C"))
    assert say_hours({both: 60.0, a: 30.0, c: 12.0}, "ABC", 100) == "about 2 hours"
    assert say_hours({both: 60.0, b: 30.0}, "B", 100) == "about 50 minutes"
    assert say_hours({a: 1.0, b: 1.0}, "AB", 3) == "about 1 minute"
    assert say_hours({a: 30.0}, "AB", 100) == ""


@pytest.mark.parametrize(
    ("gap", "people", "seconds"),
    [
        ([60] * 19, 1, None),
        ([60] * 20, 1, 60),
        ([60, 601] * 19, 1, None),
        ([60] * 30, 15, None),
        ([60, 0] * 19, 1, None),
    ],
)
def test_few_gaps_pauses_and_other_peoples_answers_give_no_hours(tmp_path, gap, people, seconds):
    merging = Merging(tmp_path)
    times = [1000.0 + sum(gap[:n]) for n in range(len(gap) + 1)]
    whose = [f"{n * people // len(times):02d}" for n in range(len(times))]
    rows = zip(times, whose, strict=True)
    tasks = [task(f"Text {n}", (0, 4), _timestamp=when, _annotator_id=who) for n, (when, who) in enumerate(rows)]
    merging.add("a", ["A"], tasks)
    merging.run()
    assert measure_seconds(tmp_path / "corpus") == ({frozenset("A"): seconds} if seconds else {})


def test_a_changed_test_set_is_scored_by_the_texts_of_both(tmp_path, monkeypatch):
    repository = Repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics/small.json").touch()
    repository.evaluate(4)
    edit(tmp_path, pipeline_digest="p", split_digest="one")
    call(report_cli, "cpu")
    assert [row.asked for row in read_forecasts(tmp_path / FILE)] == [100]
    repository.commit("earlier")
    repository.evaluate(16)
    edit(tmp_path, pipeline_digest="q", split_digest="two")
    edit(tmp_path, "merge", texts={"train": 400})
    call(report_cli, "cpu")
    before, *_ = read_forecasts(tmp_path / FILE)
    # Of 20 texts, 4 were right and now 16 are.
    assert (before.outcome, before.change) == ("scored", pytest.approx(2 * 16 / 36 - 2 * 4 / 24, abs=1e-4))
