"""The command line of the comparison, in a git repository with a DVC cache."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from pyarrow import parquet

from labelwise.base.errors import InputError
from labelwise.compare.asked import count_pipelines, describe_asked
from labelwise.compare.revisions import read_before, read_revision
from labelwise.compare.seeds import Seeds, digest_inputs, make_table, score_seeds
from labelwise.evaluate.predictions import PredictedDoc
from labelwise.evaluate.scores import AllScores, Metrics, Scores
from labelwise.evaluate.tables import Tables
from scripts.compare import compare_cli
from scripts.report import report_cli
from tests.clone import IDENTITY, call_dvc
from tests.conftest import call
from tests.report.report_inputs import write_json, write_results

LABEL = "a|b <i>"
FOLDER = "/".join(["protocols"] * 50)  # longer than a line
DECISIONS = "decisions"
SEEDS = "training/cpu/seeds.parquet"
TABLES = ("training/cpu/texts.parquet", "training/cpu/pairs.parquet")


class Repository:
    def __init__(self, root, *, below=None):
        """below (str | None): the project's subfolder; None for the root."""
        self.root = root
        self.run("git", "init", "-q", "-b", "main")
        if below:
            self.root = root / below
            self.root.mkdir()
        self.run("dvc", "init", "-q", *(["--subdir"] if below else []))

    def run(self, program, *command):
        if program == "dvc":
            call_dvc(self.root, *command)
        else:
            environment = os.environ | IDENTITY
            subprocess.run([program, *command], cwd=self.root, env=environment, check=True, capture_output=True)

    def compare(self, *args, fails=False):
        with pytest.MonkeyPatch.context() as patched:
            patched.chdir(self.root)
            return call(compare_cli, *args, status=int(fails))

    def evaluate(self, right, *, dvc=True):
        docs = [
            PredictedDoc(f"{n:02d}", "abc", [(0, 3, LABEL)] * (n < right), [(0, 3, LABEL)], doc=f"{FOLDER}/{n:02d}.txt")
            for n in range(20)
        ]
        for file in TABLES:
            (self.root / file).unlink(missing_ok=True)
        write_results(self.root, docs, labels=[LABEL], in_train=(0, 0))
        if dvc:
            self.run("dvc", "add", "-q", *TABLES)

    def train_seeds(self, *rights):
        """Write the files of `seeds`, given the number of right texts of each training."""
        (self.root / "configs").mkdir(exist_ok=True)
        (self.root / "configs/cpu.cfg").write_text("# a config")
        (self.root / "metrics/merge.sha256").write_text("0123\n")
        texts = [[(f"{n:02d}", [[int(n < right)] * 2 + [1]]) for n in range(20)] for right in rights]
        every = pa.concat_tables(make_table("test", seed, [LABEL], own) for seed, own in enumerate(texts))
        parquet.write_table(every.unify_dictionaries(), self.root / SEEDS)
        inputs = digest_inputs(b"# a config", "0123", "89abcdef01234567")
        counts = hashlib.sha256((self.root / SEEDS).read_bytes()).hexdigest()
        seeds = Seeds(inputs, counts, **score_seeds(every, [LABEL]))
        write_json(self.root / "metrics/cpu_seeds.json", msgspec.to_builtins(seeds))
        self.run("dvc", "add", "-q", SEEDS)

    def commit(self, message):
        self.run("git", "add", "-A")
        self.run("git", "commit", "-qm", message)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """Revisions "main" (4 of 20 texts right) and "better" (16); the workspace has 12, and one decision less."""
    repository = Repository(tmp_path_factory.mktemp("compared"), below="models")
    (repository.root / DECISIONS).mkdir()
    (repository.root / DECISIONS / "one.jsonl").write_text("{}")
    (repository.root / DECISIONS / "two.jsonl").write_text("[]\n")
    repository.evaluate(4)
    repository.commit("main")
    repository.run("git", "checkout", "-qb", "better")
    repository.evaluate(16)
    repository.commit("better")
    repository.run("git", "checkout", "-q", "main")
    repository.evaluate(12, dvc=False)
    (repository.root / DECISIONS / "one.jsonl").unlink()
    return repository


def compare_json(repository, *args):
    return json.loads(repository.compare(*args, "--format", "json"))


def test_revisions_are_read_from_git_and_the_cache_and_shown_in_a_table(repository):
    comparison = compare_json(repository, "main", "better")
    assert comparison["micro"]["f"] == {"main": pytest.approx(8 / 24), "better": pytest.approx(32 / 36)}
    assert not comparison["micro"]["changes"]["better"]["significant"]
    printed = repository.compare("main", "better")
    heads = [line.split() for line in printed.splitlines() if line.startswith("F1 ")]
    assert heads == [["F1", "main", "better", "Difference", "95%", "Support"]]
    row = next(line for line in printed.splitlines() if line.startswith("all (micro)"))
    assert row.split()[2:5] == ["0.333", "0.889", "+0.556"]
    printed = repository.compare("main", "better", "workspace")
    *_, last = (line.split() for line in printed.splitlines() if line.strip().startswith("workspace"))
    assert last[1:3] == ["0.750", "+0.417"]
    assert "20 texts, gold of workspace" in printed


def test_mistakes_that_two_revisions_do_not_share_are_listed(repository):
    spans = compare_json(repository, "main", "better", "--spans")["spans"]
    assert [(span["change"], span["mistake"], span["words"]) for span in spans] == [("fixed", "missed", "abc")] * 12
    printed = repository.compare("better", "main", "--spans")
    assert printed.count("missed") == printed.count(f" {FOLDER}/") == printed.count(".txt\n") == 12
    assert "12 errors that only one of better and main makes" in " ".join(printed.split())
    assert "spans" not in compare_json(repository, "main", "better")
    for words, n in (("FIXED abc", 12), ("fixed new", 0)):
        assert len(compare_json(repository, "main", "better", "--find", words)["spans"]) == n
        printed = " ".join(repository.compare("main", "better", "--find", words).split())
        assert f"{n} of 12 errors that only one of main and better makes" in printed


@pytest.fixture(scope="module")
def with_seeds(tmp_path_factory):
    """Revisions "one" (4 texts right; 3 to 5 with other seeds) and "two" (16; one training)."""
    repository = Repository(tmp_path_factory.mktemp("seeds"))
    repository.evaluate(4)
    repository.train_seeds(4, 3, 5)
    repository.commit("one")
    repository.run("git", "tag", "one")
    repository.run("git", "rm", "-q", "metrics/cpu_seeds.json", f"{SEEDS}.dvc")
    repository.evaluate(16)
    repository.commit("two")
    repository.run("git", "tag", "two")
    return repository


def test_trainings_with_other_seeds_on_one_side_give_a_star(with_seeds):
    comparison = compare_json(with_seeds, "one", "two")
    assert comparison["trainings"] == {"one": 3, "two": 1}
    change = comparison["micro"]["changes"]["two"]
    assert change["significant"]
    assert (
        0
        < change["low"]
        < change["difference"]
        == pytest.approx(32 / 36 - sum(2 * n / (20 + n) for n in (3, 4, 5)) / 3)
    )
    assert "has no star" not in with_seeds.compare("one", "two")


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("configs/cpu.cfg", "a config", "another", "is of another config"),
        ("metrics/merge.sha256", "0123", "4567", "is of another corpus"),
        ("metrics/cpu.json", "89abcdef01234567", "another", "is of another pipeline"),
        (f"{SEEDS}.dvc", "", None, "was computed from another seeds.parquet than DVC has"),
        ("metrics/cpu_seeds.json", '"counts"', '"other"', "isn't what `seeds` writes (Object missing required field"),
    ],
)
def test_trainings_of_something_else_do_not_count(file, old, new, message, with_seeds):
    with_seeds.run("git", "checkout", "-q", "one")
    path = with_seeds.root / file
    if new is None:
        path.unlink()
    else:
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    with_seeds.commit(message)
    printed = " ".join(with_seeds.compare("HEAD", "two").split())
    assert f"HEAD: other seeds don't count: metrics/cpu_seeds.json {message}" in printed
    remedy = "run `dvc repro seeds@cpu` (with cpu in `seeds` of the section `dvc` of project.yml) there, and commit it"
    assert remedy in printed
    assert "two has no star: its interval is for these two trainings; other seeds may differ as much" in printed


def test_a_training_that_stopped_too_early_has_no_star(with_seeds):
    with_seeds.run("git", "checkout", "-q", "two")
    (with_seeds.root / "plots/cpu.tsv").write_text("step\tents_f\n1\t0.3\n2\t0.6\n4\t0.9\n")
    with_seeds.commit("a curve that rises")
    printed = " ".join(with_seeds.compare("one", "HEAD").split())
    assert "HEAD has no star: the training of HEAD stopped too early: F1 on dev still rises" in printed


def test_two_pipelines_of_a_revision_are_compared(tmp_path):
    repository = Repository(tmp_path)
    (tmp_path / "configs").mkdir()
    for pipeline in ("cpu", "small", "gpu"):
        (tmp_path / f"configs/{pipeline}.cfg").touch()
    for pipeline, right in (("small", 16), ("cpu", 4)):
        repository.evaluate(right, dvc=False)
        if pipeline == "small":
            shutil.move(tmp_path / "training/cpu", tmp_path / "training/small")
            shutil.move(tmp_path / "metrics/cpu.json", tmp_path / "metrics/small.json")
    compared = compare_json(repository, "workspace:cpu", "workspace:small")
    assert compared["micro"]["f"] == {"workspace:cpu": pytest.approx(8 / 24), "workspace:small": pytest.approx(32 / 36)}
    assert compare_json(repository, "workspace", "workspace:small")["micro"]["changes"]["workspace:small"]["low"] > 0
    (tmp_path / "configs/pupil.cfg").write_text('[paths]\ncorpus = "training/pupil/corpus"\n')
    assert "run `dvc repro evaluate-student@pupil` (with pupil in `students` of" in repository.compare(
        "workspace:cpu", "workspace:pupil", fails=True
    )
    assert "no metrics/gpu.json; run `dvc repro evaluate@gpu`" in repository.compare(
        "workspace:cpu", "workspace:gpu", fails=True
    )


@pytest.mark.parametrize("given", [[], ["main"], ["HEAD", "workspace"]])
def test_the_workspace_is_what_is_there_now(repository, given):
    comparison = compare_json(repository, *given)
    assert comparison["revisions"] == [given[0] if given else "HEAD", "workspace"]
    assert comparison["micro"]["f"]["workspace"] == pytest.approx(24 / 32)


def write_as_0_3_0(root: Path) -> None:
    texts, pairs = (parquet.read_table(root / file) for file in TABLES)
    parquet.write_table(texts.drop_columns(["unit", "groups"]), root / TABLES[0])
    columns = {"gold_text": "form", "predicted_text": "predicted_form", "annotated": "marked", "unannotated": "free"}
    causes = {"unseen": "new", "misaligned": "tokens"}
    rows = [{columns.get(name, name): value for name, value in row.items()} for row in pairs.to_pylist()]
    for row in rows:
        row |= {"form": row["form"] or row["predicted_form"], "cause": causes.get(row["cause"], row["cause"])}
    names = [columns.get(name, name) for name in pairs.column_names]
    schema = pa.schema(zip(names, pairs.schema.types, strict=True))
    parquet.write_table(pa.Table.from_pylist(rows, schema), root / TABLES[1])
    metrics = json.loads((root / "metrics/cpu.json").read_text())
    for own in metrics["mistakes"].values():
        own["unjudged"] = own.pop("unscored")
        own["causes"] = {causes.get(name, name): n for name, n in own["causes"].items()}
    metrics |= {"untaught": metrics.pop("excluded_labels"), "labelwise": "0.3.0"}
    metrics["predictions_digest"] = Tables.of(root / "training/cpu").digest()
    (root / "metrics/cpu.json").write_text(json.dumps(metrics))


def test_results_of_0_3_0_are_compared_by_todays_names_and_earlier_ones_refused(tmp_path):
    repository = Repository(tmp_path)
    repository.evaluate(4)
    repository.commit("today")
    repository.run("git", "tag", "today")
    write_as_0_3_0(repository.root)
    repository.run("dvc", "add", "-q", *TABLES)
    repository.commit("0.3.0")
    repository.run("git", "tag", "previous")
    file = repository.root / "metrics/cpu.json"
    for version, release in (({"labelwise": "0.2.0"}, "labelwise 0.2.0"), ({}, "a release before 0.3.0")):
        metrics = json.loads(file.read_text())
        del metrics["labelwise"]
        file.write_text(json.dumps(metrics | version))
        printed = " ".join(repository.compare("previous", "workspace", fails=True).split())
        assert f"workspace: metrics/cpu.json: {release} wrote it, but comparisons read results of 0.3.0" in printed
        repository.run("git", "checkout", "metrics")
    repository.evaluate(16)
    old, new = (compare_json(repository, name, "workspace", "--spans") for name in ("previous", "today"))
    assert json.loads(json.dumps(old).replace('"previous"', '"today"')) == new
    assert [span["cause"] for span in new["spans"]] == ["unseen"] * 12
    assert read_before("previous", "cpu", DECISIONS, repository.root)[0].mistakes[LABEL].causes["unseen"] == 16


@pytest.mark.guarantee("compared")
def test_predictions_of_another_run_are_refused(repository, tmp_path):
    copied = Repository(tmp_path)
    copied.evaluate(4)
    copied.commit("main")
    copied.evaluate(12, dvc=False)
    copied.commit("metrics alone")
    copied.evaluate(16)
    printed = " ".join(copied.compare("HEAD", fails=True).split())
    assert "HEAD: training/cpu/pairs.parquet isn't what metrics/cpu.json was computed from" in printed


def test_tables_that_are_not_in_the_cache_are_said_and_a_remote_will_do(tmp_path):
    repository = Repository(tmp_path)
    repository.run("dvc", "remote", "add", "-q", "-d", "store", str(tmp_path / "store"))
    repository.evaluate(4)
    repository.commit("main")
    repository.run("dvc", "push", "-q")
    repository.run("rm", "-rf", ".dvc/cache")
    repository.evaluate(12, dvc=False)
    assert compare_json(repository)["micro"]["f"]["HEAD"] == pytest.approx(8 / 24)
    repository.run("rm", "-rf", ".dvc/cache", "store")
    printed = " ".join(repository.compare(fails=True).split())
    assert "HEAD: training/cpu/pairs.parquet is neither in DVC's cache nor in its default remote" in printed
    assert "`dvc push` where it was written" in printed
    assert "`dvc metrics diff HEAD`" in printed
    (tmp_path / "project.yml").write_text("report:\n  baseline: HEAD\n")
    printed = " ".join(call(report_cli, "cpu", "--root", tmp_path).split())
    assert "Fixed and new errors aren't listed: HEAD: training/cpu/pairs.parquet is neither in DVC's cache" in printed
    assert b" since HEAD" in (tmp_path / "report/cpu.html").read_bytes()


@pytest.mark.parametrize("content", [b'{"labelwise": "0.3.0", "texts": 3}', b"3", b'"\xff"'])
def test_metrics_of_an_earlier_version_or_of_something_else(content, tmp_path):
    repository = Repository(tmp_path)
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics/cpu.json").write_bytes(content)
    with pytest.raises(InputError, match=r"isn't what an evaluation writes now .*; run `dvc repro"):
        read_revision("workspace", "cpu", tmp_path / "read", repository.root)


def test_a_report_compares_with_the_last_commit_that_has_other_scores(tmp_path):
    made, pages = Repository(tmp_path, below="models"), []

    def report():
        call(report_cli, "cpu", "--root", made.root)
        pages.append((made.root / "report/cpu.html").read_bytes())

    made.evaluate(4, dvc=False)
    report()
    made.commit("baseline")
    report()
    assert pages[0] == pages[1]
    assert b'id="since"' not in pages[0]
    baseline = subprocess.check_output(["git", "rev-parse", "--short=8", "HEAD"], cwd=tmp_path).strip()
    made.evaluate(12, dvc=False)
    report()
    made.commit("better")
    report()
    (made.root / "notes.txt").write_text("unrelated")
    made.commit("notes")
    report()
    assert pages[2] == pages[3] == pages[4]
    assert re.search(rb"F1 0\.333 \S+ 0\.\d+ since " + baseline, pages[2])


def test_what_was_before_is_read_with_the_decisions_of_then(repository):
    metrics, decisions = read_before("HEAD", "cpu", DECISIONS, repository.root)
    assert (metrics.mistakes[LABEL].right, decisions.split()) == (4, [b"{}", b"[]"])
    assert read_before("HEAD", "cpu", "elsewhere", repository.root)[1] == b""
    with pytest.raises(InputError, match="nowhere"):
        read_before("nowhere", "cpu", DECISIONS, repository.root)


def test_pipelines_that_were_scored_on_the_same_texts_are_counted(tmp_path):
    repository = Repository(tmp_path, below="models")
    (repository.root / "configs").mkdir()

    def score(config, right, texts="58 texts", pipeline="cpu", seed=0, steps=0):
        (repository.root / f"configs/{pipeline}.cfg").write_text(config)
        (repository.root / "project.yml").write_text(f"vars:\n  seed: {seed}\n  steps: {steps}\n")
        write_json(repository.root / f"metrics/{pipeline}.json", {"texts_digest": texts, "texts": 58, "right": right})
        repository.commit(f"{config} {right}")

    score("first", 1)
    score("first", 2, seed=1)
    score("second", 3)
    score("second", 4, steps=900)
    score("third", 5, texts="others")
    repository.run("git", "checkout", "-qb", "away", "HEAD~2")
    score("small", 1, pipeline="small")
    repository.run("git", "update-ref", "refs/exps/ab/cdef/an-exp", "HEAD")
    repository.run("git", "checkout", "-q", "main")
    repository.run("git", "branch", "-qD", "away")
    assert count_pipelines("58 texts", repository.root) == 4
    assert count_pipelines("others", repository.root) == 1
    metrics = Metrics(
        58, AllScores(None, None, None, macro=Scores(None, None, None), labels={}), texts_digest="58 texts"
    )
    message = "At least 4 pipelines were scored on exactly these 58 texts, in this clone's history"
    assert describe_asked(metrics, repository.root) == message
    repository.run("git", "clone", "-q", "--depth=1", f"file://{tmp_path}", str(tmp_path / "shallow"))
    metrics.texts_digest = "others"
    message = "At least 1 pipeline was scored on exactly these 58 texts, in this shallow clone's history"
    assert message == describe_asked(metrics, tmp_path / "shallow/models")
    assert describe_asked(metrics, tmp_path.parent) == ""
