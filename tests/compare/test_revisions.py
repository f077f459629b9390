"""The command line of the comparison, in a git repository with a DVC cache."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from labelwise.base.errors import InputError
from labelwise.compare.revisions import read_before, read_revision
from labelwise.evaluate.predictions import PredictedDoc
from scripts.compare import compare_cli
from scripts.report import report_cli
from tests.clone import IDENTITY
from tests.conftest import call
from tests.report.report_inputs import write_results

LABEL = "a|b <i>"
FOLDER = "/".join(["protocols"] * 50)  # longer than a line
DECISIONS = "decisions"
TABLES = ("training/cpu/texts.parquet", "training/cpu/pairs.parquet")


class Repository:
    """Results of evaluations in git and DVC."""

    def __init__(self, root, *, below=None):
        """Begin a repository; the project is its folder, or one below."""
        self.root = root
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.environment = {**os.environ, **IDENTITY, "PATH": path}
        self.run("git", "init", "-q", "-b", "main")
        if below:
            self.root = root / below
            self.root.mkdir()
        self.run("dvc", "init", "-q", *(["--subdir"] if below else []))

    def run(self, *command):
        subprocess.run(command, cwd=self.root, env=self.environment, check=True, capture_output=True)

    def compare(self, *given, fails=False):
        """Call the command in this folder; return what it prints."""
        with pytest.MonkeyPatch.context() as patched:
            patched.chdir(self.root)
            return call(compare_cli, *given, status=int(fails))

    def evaluate(self, right, *, dvc=True):
        """Write what an evaluation of 20 texts writes, with so many texts right."""
        docs = [
            PredictedDoc(f"{n:02d}", "abc", [(0, 3, LABEL)] * (n < right), [(0, 3, LABEL)], doc=f"{FOLDER}/{n:02d}.txt")
            for n in range(20)
        ]
        for file in TABLES:
            (self.root / file).unlink(missing_ok=True)
        write_results(self.root, docs, labels=[LABEL], in_train=(0, 0))
        if dvc:
            self.run("dvc", "add", "-q", *TABLES)

    def commit(self, message):
        self.run("git", "add", "-A")
        self.run("git", "commit", "-qm", message)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """Revisions "main", 4 texts right, and "better", 16; in the workspace, 12 are right, and a decision less.

    The project is a subfolder.
    """
    made = Repository(tmp_path_factory.mktemp("compared"), below="models")
    (made.root / DECISIONS).mkdir()
    (made.root / DECISIONS / "one.jsonl").write_text("{}")
    (made.root / DECISIONS / "two.jsonl").write_text("[]\n")
    made.evaluate(4)
    made.commit("main")
    made.run("git", "checkout", "-qb", "better")
    made.evaluate(16)
    made.commit("better")
    made.run("git", "checkout", "-q", "main")
    made.evaluate(12, dvc=False)
    (made.root / DECISIONS / "one.jsonl").unlink()
    return made


def found(repository, *given):
    return json.loads(repository.compare(*given, "--format", "json"))


def test_revisions_are_read_from_git_and_the_cache_and_shown_in_a_table(repository):
    made = found(repository, "main", "better")
    assert made["micro"]["f"] == {"main": pytest.approx(8 / 24), "better": pytest.approx(32 / 36)}
    assert made["micro"]["changes"]["better"]["significant"]
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
    """16 of 20 texts are right, and 4 were: 12 are won."""
    made = found(repository, "main", "better", "--spans")["spans"]
    assert [(one["change"], one["mistake"], one["words"]) for one in made] == [("won", "missed", "abc")] * 12
    printed = repository.compare("better", "main", "--spans")
    assert printed.count("missed") == printed.count(f" {FOLDER}/") == printed.count(".txt\n") == 12
    assert "12 mistakes that better and main don't share: lost ones are new" in " ".join(printed.split())
    assert "spans" not in found(repository, "main", "better")
    for words, n in (("WON abc", 12), ("won lost", 0)):
        assert len(found(repository, "main", "better", "--find", words)["spans"]) == n
        printed = " ".join(repository.compare("main", "better", "--find", words).split())
        assert f"{n} of 12 mistakes that main and better don't share" in printed


@pytest.mark.parametrize("digest", ["in the metrics", "in its file"])
def test_revisions_that_differ_by_their_seed_alone_have_no_star(digest, tmp_path):
    """Where the corpus is the same; commits of 0.3.0 have its digest in the metrics."""
    made = Repository(tmp_path)
    merge, own = (tmp_path / f"metrics/merge.{suffix}" for suffix in ("json", "sha256"))
    for name, right, seed in (("one", 4, 0), ("two", 16, 1)):
        made.run("git", "checkout", "-qb", name)
        made.evaluate(right)
        if digest == "in its file":
            counts = json.loads(merge.read_text())
            own.write_text(counts.pop("digest") + "\n")
            merge.write_text(json.dumps(counts))
        (tmp_path / "project.yml").write_text(f"vars:\n  seed: {seed}\n  steps: 600\n")
        made.commit(name)
    printed = " ".join(made.compare("one", "two").split())
    assert "two has no star: it differs from one in its seed alone" in printed
    assert "+0.556" in printed
    assert "*" not in printed.partition("20 texts")[0]
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/cpu.cfg").write_text("# edited")
    made.commit("a setting of the config")
    assert "has no star" not in made.compare("one", "two")
    (tmp_path / "configs/cpu.cfg").unlink()
    made.commit("as it was")
    assert "has no star" in made.compare("one", "two")
    changed = own if own.exists() else merge
    changed.write_text(changed.read_text().replace("0123", "4567"))
    made.commit("another corpus")
    assert "has no star" not in made.compare("one", "two")
    made.run("git", "revert", "--no-edit", "HEAD")
    (tmp_path / "project.yml").write_text("vars:\n  seed: 1\n  steps: 900\n")
    made.commit("more steps")
    assert "has no star" not in made.compare("one", "two")
    (tmp_path / "plots/cpu.tsv").write_text("step\tents_f\n1\t0.3\n2\t0.6\n4\t0.9\n")
    made.commit("a curve that rises")
    printed = " ".join(made.compare("one", "two").split())
    assert "two has no star: the training of two stopped too early: F1 on dev still rises" in printed


def test_two_pipelines_of_a_revision_are_compared(tmp_path):
    """Which of them is better, and where, is asked as of two revisions."""
    made = Repository(tmp_path)
    (tmp_path / "configs").mkdir()
    for pipeline in ("cpu", "small", "gpu"):
        (tmp_path / f"configs/{pipeline}.cfg").touch()
    for pipeline, right in (("small", 16), ("cpu", 4)):
        made.evaluate(right, dvc=False)
        if pipeline == "small":
            shutil.move(tmp_path / "training/cpu", tmp_path / "training/small")
            shutil.move(tmp_path / "metrics/cpu.json", tmp_path / "metrics/small.json")
    compared = found(made, "workspace:cpu", "workspace:small")
    assert compared["micro"]["f"] == {"workspace:cpu": pytest.approx(8 / 24), "workspace:small": pytest.approx(32 / 36)}
    assert found(made, "workspace", "workspace:small")["micro"]["changes"]["workspace:small"]["significant"]
    (tmp_path / "project.yml").write_text("vars:\n  seed: 0\n")
    made.commit("another seed")
    (tmp_path / "project.yml").write_text("vars:\n  seed: 1\n")
    assert "has no star" in made.compare("HEAD", "workspace:cpu")
    assert "has no star" not in made.compare("HEAD", "workspace:small")
    assert "no metrics/gpu.json; run `dvc repro evaluate@gpu`" in made.compare(
        "workspace:cpu", "workspace:gpu", fails=True
    )


@pytest.mark.parametrize("given", [[], ["main"], ["HEAD", "workspace"]])
def test_the_workspace_is_what_is_there_now(repository, given):
    made = found(repository, *given)
    assert made["revisions"] == [given[0] if given else "HEAD", "workspace"]
    assert made["micro"]["f"]["workspace"] == pytest.approx(24 / 32)


def test_predictions_of_another_run_are_refused(repository, tmp_path):
    """Metrics that were committed without what they were computed from, as after `weasel run`."""
    made = Repository(tmp_path)
    made.evaluate(4)
    made.commit("main")
    made.evaluate(12, dvc=False)
    made.commit("metrics alone")
    made.evaluate(16)
    printed = " ".join(made.compare("HEAD", fails=True).split())
    assert "HEAD: training/cpu/pairs.parquet isn't what metrics/cpu.json was computed from" in printed


def test_tables_that_are_not_in_the_cache_are_said_and_a_remote_will_do(tmp_path):
    made = Repository(tmp_path)
    made.run("dvc", "remote", "add", "-q", "-d", "store", str(tmp_path / "store"))
    made.evaluate(4)
    made.commit("main")
    made.run("dvc", "push", "-q")
    made.run("rm", "-rf", ".dvc/cache")
    made.evaluate(12, dvc=False)
    assert found(made)["micro"]["f"]["HEAD"] == pytest.approx(8 / 24)
    made.run("rm", "-rf", ".dvc/cache", "store")
    printed = " ".join(made.compare(fails=True).split())
    assert "HEAD: training/cpu/pairs.parquet isn't in DVC's cache" in printed
    assert "`dvc metrics diff HEAD`" in printed
    (tmp_path / "project.yml").write_text("report:\n  base: HEAD\n")
    printed = " ".join(call(report_cli, "cpu", "--root", tmp_path).split())
    assert "What was won and lost since isn't listed: HEAD: training/cpu/pairs.parquet isn't in DVC's cache" in printed
    assert b" at HEAD and is " in (tmp_path / "report/cpu.html").read_bytes()


@pytest.mark.parametrize("content", [b'{"texts": 3}', b"3", b'"\xff"'])
def test_metrics_of_an_earlier_version_or_of_something_else(content, tmp_path):
    made = Repository(tmp_path)
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics/cpu.json").write_bytes(content)
    with pytest.raises(InputError, match=r"isn't what an evaluation writes now .*; run `dvc repro"):
        read_revision("workspace", "cpu", tmp_path / "read", made.root)


def test_a_report_compares_with_the_last_other_scores_whatever_else_is_committed(tmp_path):
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
    assert b"F1 was\n0.333 at " + baseline in pages[2]


def test_what_was_before_is_read_with_the_decisions_of_then(repository):
    metrics, decisions = read_before("HEAD", "cpu", DECISIONS, repository.root)
    assert (metrics.mistakes[LABEL].right, decisions.split()) == (4, [b"{}", b"[]"])
    assert read_before("HEAD", "cpu", "elsewhere", repository.root)[1] == b""
    with pytest.raises(InputError, match="nowhere"):
        read_before("nowhere", "cpu", DECISIONS, repository.root)
