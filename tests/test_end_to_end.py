"""The whole way, by weasel and by DVC, in a copy of the repository with a tiny corpus."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
import yaml
from distributed import LocalCluster

from tests.conftest import ROOT, write_jsonl

DEMO = "scripts.make_demo assets/demo"
TINY = {
    "docs_per_partition": "8",
    "dev_ratio": "0.2",
    "test_ratio": "0.2",
    "cpu_steps": "10",
}
COMMAND_RUN = r"=+ (\S+) =+\S*\nRunning command"  # weasel's, of a command that it doesn't skip
IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.org")
RESULTS = ("corpus", "metrics", "plots", "training/cpu")


# What keeps tools from calling home anyway; the project has to do so by itself.
SILENCING = ("CI", "DVC_NO_ANALYTICS", "DVC_TEST", "HF_HUB_DISABLE_TELEMETRY", "HF_HUB_OFFLINE", "DO_NOT_TRACK")


class Copy:
    """A copy of the repository's files, with its own git repository and small numbers in project.yml.

    connections (Path): a file in which every attempt to reach another machine is written down; none succeeds.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.connections = root.with_name(f"{root.name}.connections")
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        # Bytecode is written, as it is where nobody forbids it.
        left_out = ("PYTHONDONTWRITEBYTECODE", *SILENCING)
        environment = {name: value for name, value in os.environ.items() if name not in left_out}
        watched = {"PYTHONPATH": str(ROOT / "tests" / "no_network"), "CONNECTIONS": str(self.connections)}
        self.environment = {**environment, **watched, "PATH": path, "COLUMNS": "200"}
        files = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True)
        for name in files.splitlines():
            if (ROOT / name).is_file() and not name.startswith(("tests/", "metrics/", "plots/cpu", "dvc.lock")):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes((ROOT / name).read_bytes())
        for name in ("project.yml", "dvc.yaml"):
            text = (root / name).read_text(encoding="utf8")
            assert text.count(DEMO) == 1
            (root / name).write_text(text.replace(DEMO, f"{DEMO} --docs 24 --labels 3"), encoding="utf8")
        for name, value in TINY.items():
            self.set(name, value)
        self.run("git", "init", "-q", "-b", "main")
        self.commit("start")

    def set(self, name: str, value: str) -> None:
        """Change a variable of project.yml, or a key of one of its sections."""
        path = self.root / "project.yml"
        text, count = re.subn(rf"(?m)^  {name}: \S+", f"  {name}: {value}", path.read_text(encoding="utf8"))
        assert count == 1, name
        path.write_text(text, encoding="utf8")

    def edit(self, file: str) -> None:
        """Change a file of the code, but not what it does."""
        with (self.root / file).open("a", encoding="utf8") as code:
            code.write("# edited\n")

    def commit(self, message: str) -> None:
        self.run("git", "add", "-A")
        self.run("git", *IDENTITY, "commit", "--allow-empty", "-qm", message)

    def run(self, *command: str, fails: bool = False) -> str:
        """Run a command of this environment, and give what it prints."""
        done = subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, text=True, check=False)
        assert bool(done.returncode) == fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    def results(self) -> dict[str, bytes]:
        """What the run made, by path, but for the merge's cache, and what takes a clock."""
        paths = [path for name in RESULTS for path in (self.root / name).rglob("*") if path.is_file()]
        files = {path.relative_to(self.root).as_posix(): path for path in paths}
        skipped = ("/.cache/", "/resources.tsv")
        return {name: path.read_bytes() for name, path in files.items() if not any(part in name for part in skipped)}


@pytest.fixture(scope="module")
def by_weasel(tmp_path_factory) -> tuple[Copy, str]:
    copy = Copy(tmp_path_factory.mktemp("weasel"))
    return copy, copy.run("weasel", "run", "all")


@pytest.fixture(scope="module")
def merged_by_dvc(tmp_path_factory) -> Copy:
    copy = Copy(tmp_path_factory.mktemp("dvc"))
    copy.run("dvc", "repro", "merge")
    return copy


@pytest.fixture(scope="module")
def by_dvc(merged_by_dvc) -> Copy:
    merged_by_dvc.run("dvc", "repro", "report")
    merged_by_dvc.commit("results")
    return merged_by_dvc


def test_weasel_goes_the_whole_way(by_weasel):
    copy, printed = by_weasel
    assert (copy.root / "training/cpu/model-best/meta.json").is_file()
    assert not (copy.root / "training/cpu/model-best.checkpoint").exists()
    resources = (copy.root / "training/cpu/resources.tsv").read_text()
    assert resources.startswith("seconds\tstep\twords_per_second\tmemory_mb")
    assert "Memory: " in printed
    made = {path for path in copy.results() if not path.endswith(".spacy") and not path.startswith("training/")}
    assert made == {
        *(f"metrics/{name}.json" for name in ("merge", "cpu")),
        *(f"plots/{name}.tsv" for name in ("cpu", "gpu")),
        *(f"corpus/tasks/{name}" for name in ("auto.jsonl", "datasets.yml", "problems.jsonl", "report.json")),
        *(f"corpus/{name}.jsonl" for name in ("lost_spans", "disagreements", "problems", "places", "near_duplicates")),
        *(f"corpus/{name}.json" for name in ("labels/ner", "labels/per_label", "tokenizer", "annotators", "manifest")),
    }
    assert sum(path.startswith("corpus/train/") for path in copy.results()) > 1
    assert {f"training/cpu/{name}.parquet" for name in ("texts", "pairs")} <= copy.results().keys()
    assert (copy.root / "training/check/findings.jsonl").is_file()
    assert "metrics/cpu.json" in printed
    page = (copy.root / "report/cpu.html").read_text(encoding="utf8")
    assert "CPU pipeline" in page
    assert len(page.encode("utf8")) <= 1_000_000


def test_dvc_merges_the_same(by_weasel, merged_by_dvc):
    made = merged_by_dvc.results()
    assert "corpus/manifest.json" in made
    assert made.items() <= by_weasel[0].results().items()


@pytest.mark.long
def test_dvc_gives_the_same(by_weasel, by_dvc):
    assert by_dvc.results() == by_weasel[0].results()
    again = by_dvc.run("dvc", "repro", "report")
    assert "Running stage" not in again
    assert "up to date" in again


def test_a_second_run_does_nothing(by_weasel, merged_by_dvc):
    again = by_weasel[0].run("weasel", "run", "all")
    assert re.findall(COMMAND_RUN, again) == ["report"], "which may show what another command has found since"
    assert again.count("Skipping") == 6
    again = merged_by_dvc.run("dvc", "repro", "merge")
    assert "Running stage" not in again
    assert "up to date" in again


@pytest.mark.long
def test_a_new_file_is_merged_by_the_next_run_and_then_nothing_is_done(tmp_path):
    copy = Copy(tmp_path)
    rows = [{"text": f"Ann saw {n} dogs.", "spans": [{"start": 0, "end": 3, "label": "PERSON"}]} for n in range(40)]
    write_jsonl(tmp_path / "assets/prodigy/person.jsonl", rows)
    copy.run("weasel", "run", "all")
    animals = [{**row, "spans": [{"start": 10, "end": 14, "label": "ANIMAL"}]} for row in rows[:30]]
    write_jsonl(tmp_path / "assets/prodigy/animal.jsonl", animals)
    printed = " ".join(copy.run("weasel", "run", "all").split())
    assert "datasets.yml has new data sets: check it" in printed
    assert set(json.loads((tmp_path / "metrics/merge.json").read_text())["labels"]) == {"PERSON", "ANIMAL"}
    again = copy.run("weasel", "run", "all")
    assert (re.findall(COMMAND_RUN, again), again.count("Skipping")) == (["report"], 6)
    copy.run("dvc", "repro", "report")
    assert "Running stage" not in copy.run("dvc", "repro", "report")


def found_by(pipeline: Path, texts: list[str], label: str) -> list[tuple[str, int, int, float]]:
    """All spans of a label, with their probabilities."""
    found = []
    for doc in spacy.load(pipeline).pipe(texts):
        rows = zip(doc.spans["labels"], doc.spans["labels"].attrs["scores"], strict=True)
        found += [(doc.text, span.start, span.end, float(p)) for span, p in rows if span.label_ == label]
    return found


@pytest.mark.long
def test_a_pipeline_of_a_revision_can_be_had_without_the_project(by_dvc, tmp_path):
    copy = by_dvc
    copy.run("dvc", "repro", "package")
    copy.run("dvc", "remote", "add", "-d", "store", str(tmp_path / "store"))
    copy.commit("package")
    copy.run("git", "tag", "v1.2")
    copy.run("dvc", "push", "package", "train-cpu")
    (tmp_path / "elsewhere").mkdir()
    for name in ("dist", "training/cpu/model-best"):
        got = tmp_path / "elsewhere" / Path(name).name
        copy.run("dvc", "get", str(copy.root), name, "--rev", "v1.2", "-o", str(got))
        made = {path.relative_to(copy.root / name): path.read_bytes() for path in (copy.root / name).rglob("*.*")}
        assert {path.relative_to(got): path.read_bytes() for path in got.rglob("*.*")} == made
        assert made
    (wheel,) = (tmp_path / "elsewhere" / "dist").glob("*.whl")
    assert wheel.name == "en_ner-0.1.0-py3-none-any.whl"


@pytest.mark.long
def test_an_edit_runs_what_depends_on_its_folder(by_weasel, by_dvc):
    for file, commands in (
        ("labelwise/report/deck.py", ["report"]),
        # The pipeline is the same, and so evaluate-cpu needn't run; what training took isn't.
        ("labelwise/train/clock.py", ["train-cpu", "report"]),
    ):
        by_weasel[0].edit(file)
        printed = by_weasel[0].run("weasel", "run", "all")
        assert re.findall(COMMAND_RUN, printed) == commands, printed
        by_dvc.edit(file)
        assert re.findall(r"Running stage '(.*?)'", by_dvc.run("dvc", "repro", "report")) == commands
    assert by_dvc.results() == by_weasel[0].results()


@pytest.mark.long
def test_an_experiment_changes_one_line_of_the_project(by_dvc):
    copy = by_dvc
    copy.commit("before the experiment")
    copy.run("dvc", "exp", "run", "-n", "seeded", "-S", "project.yml:vars.seed=1", "evaluate-cpu")
    assert copy.run("git", "diff", "--numstat", "project.yml").split() == ["1", "1", "project.yml"]
    assert re.search(r"(?m)^-  seed: 0$\n\+  seed: 1$", copy.run("git", "diff", "-U0", "project.yml"))
    copy.run("git", "checkout", "-q", "--", ".")
    copy.run("dvc", "checkout", "-q", "--with-deps", "report")
    made = json.loads(copy.run(sys.executable, "-m", "scripts.compare", "main", "seeded", "--format", "json"))
    assert made["revisions"] == ["main", "seeded"]


@pytest.mark.long
def test_a_learning_curve_is_experiments_with_fewer_texts(by_dvc):
    copy = by_dvc
    copy.commit("before the experiments")
    copy.run("dvc", "exp", "run", "--queue", "-S", "project.yml:vars.limit=choice(4,8)", "evaluate-cpu")
    printed = copy.run("dvc", "exp", "run", "--run-all")
    assert sorted(map(int, re.findall(r"(?m)^texts +(\d+)$", printed))) == [4, 8]
    keep = ("--drop", ".*", "--keep", "Experiment|vars.limit|all_gold.f$")
    shown = copy.run("dvc", "exp", "show", "--no-pager", "--md", *keep)
    header, _, *rows = [line.split("|") for line in shown.splitlines() if line.startswith("|")]
    limit, f = ([cell.strip() for cell in header].index(name) for name in ("vars.limit", "all_gold.f"))
    assert {row[limit].strip() for row in rows} == {"0", "4", "8"}
    assert all(0 <= float(row[f]) <= 1 for row in rows)
    assert copy.run("git", "status", "--porcelain", "project.yml") == ""


@pytest.mark.long
def test_a_changed_variable_runs_what_it_touches_and_can_be_compared(by_dvc):
    copy = by_dvc
    copy.run("git", "checkout", "-qb", "longer")
    copy.set("cpu_steps", "20")
    printed = copy.run("dvc", "repro", "evaluate-cpu")
    assert re.findall(r"Running stage '(.*?)'", printed) == ["train-cpu", "evaluate-cpu"]
    copy.set("test_ratio", "0.4")
    printed = copy.run("dvc", "repro", "evaluate-cpu")
    assert re.findall(r"Running stage '(.*?)'", printed) == ["merge", "train-cpu", "evaluate-cpu"]
    copy.commit("longer")
    made = json.loads(copy.run(sys.executable, "-m", "scripts.compare", "main", "longer", "--format", "json"))
    assert set(made["labels"]) == {"PERSON", "PLACE", "COMPANY"}
    assert "longer" in made["left_out"]
    diff = copy.run("dvc", "params", "diff", "main", "longer", "--md")
    assert re.search(r"\| project\.yml +\| vars\.cpu_steps +\| 10 +\| 20 +\|", diff), diff
    diff = copy.run("dvc", "metrics", "diff", "main", "longer", "--md")
    assert re.search(r"\| metrics/cpu\.json +\| all_gold\.support +\| \d+ +\| \d+ +\| \d+ +\|", diff), diff
    printed = copy.run("dvc", "plots", "diff", "main", "longer", "-o", "plots_html")
    assert "failed" not in printed
    assert (copy.root / "plots_html" / "index.html").is_file()


@pytest.mark.long
def test_main_is_not_evaluated_again_after_a_branch(by_dvc):
    copy = by_dvc
    copy.run("git", "checkout", "-qf", "main")
    copy.run("dvc", "repro", "report")
    copy.commit("main")
    copy.run("git", "checkout", "-qb", "less-test")
    copy.set("test_ratio", "0.3")
    later = ["train-cpu", "evaluate-cpu", "report"]
    assert re.findall(r"Running stage '(.*?)'", copy.run("dvc", "repro", "report")) == ["merge", *later]
    copy.commit("less test")
    copy.run("git", "checkout", "-q", "main")
    printed = copy.run("dvc", "repro", "report")
    assert re.findall(r"Running stage '(.*?)'", printed) == ["merge"], "which prints what has changed"
    assert re.findall(r"Stage '(.*?)' is cached", printed) == later
    assert copy.run("git", "status", "--porcelain") == ""


def test_a_changed_tokenizer_rule_runs_the_merge(merged_by_dvc):
    copy = merged_by_dvc
    path = copy.root / "project.yml"
    before = path.read_text(encoding="utf8")
    path.write_text(before.replace("  - 8-?\\)\n", ""), encoding="utf8")
    changed = copy.run("dvc", "status", "--with-deps", "merge")
    path.write_text(before, encoding="utf8")
    assert re.findall(r"(?m)^(\S+):$", changed) == ["merge"]
    assert re.search(r"project\.yml:\s+modified:\s+tokenizer", changed)


def test_nothing_leaves_the_machine(by_weasel, merged_by_dvc):
    """All commands of the tests above, of weasel, DVC, spaCy and this project, were watched."""
    copies = (by_weasel[0], merged_by_dvc)
    # DVC calls home from processes in the background, whose PYTHONPATH it sets: it says whether it would.
    printed = copies[1].run("dvc", "version", "-v")
    assert "Check for update is disabled" in printed
    assert "Analytics is disabled" in printed
    assert "Spawned" not in printed
    assert [copy.connections.read_text() for copy in copies if copy.connections.exists()] == []
    # It isn't that nothing was watched.
    look_up = "import socket; socket.create_connection(('dvc.example.org', 443))"
    assert "tests stay on this machine" in copies[0].run(sys.executable, "-c", look_up, fails=True)
    assert copies[0].connections.read_text().startswith("socket.getaddrinfo dvc.example.org: ")
    copies[0].connections.unlink()


@pytest.mark.long
def test_other_commands_stay_on_the_machine_too(by_weasel):
    copy, _ = by_weasel
    copy.run(sys.executable, "-m", "scripts.check_assets")
    assert not copy.connections.exists()


@pytest.mark.long
@pytest.mark.parametrize("tool", ["weasel run", "dvc repro"])
def test_ones_own_data_replace_the_demo_as_long_as_they_are_there(tmp_path, tool):
    copy = Copy(tmp_path)
    for number in range(12):
        (tmp_path / f"assets/brat/{number}.txt").write_text(f"Ms {number} Smith met Mr Jones.")
        (tmp_path / f"assets/brat/{number}.ann").write_text(f"T1\tNAME 0 {9 + len(str(number))}\tMs {number} Smith\n")

    def run() -> int:
        """Run what there is to run; returns how many commands that was."""
        return sum(copy.run(*tool.split(), name).count("Running ") for name in ("make-demo", "convert-brat"))

    assert run() == 2
    assert (tmp_path / "assets/demo/prodigy/datasets.yml").read_text() == "[]\n"
    assert list((tmp_path / "assets/demo/brat").iterdir()) == []
    assert (tmp_path / "corpus/tasks/auto.jsonl").read_text().count("\n") == 12
    assert run() == 0
    for file in (tmp_path / "assets/brat").glob("*.*"):
        file.unlink()
    assert run() == 2
    assert len(list((tmp_path / "assets/demo").rglob("*.txt"))) == 24
    assert run() == 0


@pytest.mark.long
def test_fetched_assets_are_refused_if_they_are_not_what_the_project_says(tmp_path):
    """Git is told to take other repositories than GitHub's: the corpora there are other ones."""
    copy = Copy(tmp_path / "copy")
    rules = ""
    project = yaml.safe_load((ROOT / "project.yml").read_text(encoding="utf8"))
    # Files are fetched from where nothing can be put in their place.
    project["assets"] = [asset for asset in project["assets"] if "git" in asset]
    (copy.root / "project.yml").write_text(yaml.safe_dump(project))
    for asset in project["assets"]:
        repo = tmp_path / asset["git"]["repo"].rsplit("/", 1)[1]
        (repo / asset["git"]["path"]).mkdir(parents=True)
        (repo / asset["git"]["path"] / "a.txt").write_text("cat")
        rules += f'[url "file://{repo}"]\n insteadOf = {asset["git"]["repo"]}\n'
        for command in (["init", "-q", "-b", asset["git"]["branch"]], ["add", "-A"], [*IDENTITY, "commit", "-qm", "x"]):
            subprocess.run(["git", *command], cwd=repo, check=True)
    (tmp_path / "gitconfig").write_text(rules)
    copy.environment["GIT_CONFIG_GLOBAL"] = str(tmp_path / "gitconfig")
    assert copy.run("weasel", "assets", "--extra").count("Downloaded asset") == 4
    for command in (["check_assets"], ["convert_brat", "assets/litbank", "corpus/tasks"]):
        printed = copy.run(sys.executable, "-m", f"scripts.{command[0]}", *command[1:], fails=True)
        assert re.search(
            r"checksum [0-9a-f]{32}, but project\.yml says [0-9a-f]{32}; delete", " ".join(printed.split())
        )
    assert not (copy.root / "corpus/tasks").exists()


@pytest.mark.long
def test_what_a_cluster_has_done_is_not_done_again_without_it(tmp_path):
    copy = Copy(tmp_path)
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        copy.environment["LABELWISE_ADDRESS"] = cluster.scheduler_address
        copy.run("dvc", "repro", "evaluate-cpu")
        del copy.environment["LABELWISE_ADDRESS"]
    assert "Running stage" not in copy.run("dvc", "repro", "evaluate-cpu")
    for name in ("project.yml", "dvc.yaml", "dvc.lock"):
        assert cluster.scheduler_address not in (copy.root / name).read_text()
