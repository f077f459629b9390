import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
import srsly

from labelwise.corpus.tables import TABLES
from tests.clone import PLAIN, SKIPPED, Clone, make_clone, run_by_weasel
from tests.conftest import run_command
from tests.opened import opened

COMMAND_RUN = r"=+ (\S+) =+\S*\nRunning command"  # weasel's, of a command that it doesn't skip
STAGE_RUN = r"Running stage '(.*?)'"  # DVC's


@pytest.fixture(scope="module")
def by_weasel(tmp_path_factory) -> tuple[Clone, str]:
    return run_by_weasel(tmp_path_factory)


@pytest.fixture(scope="module")
def merged_by_dvc(tmp_path_factory) -> Clone:
    clone = make_clone(tmp_path_factory.mktemp("dvc"))
    clone.commit("as set")
    clone.call("demo")
    clone.run("dvc", "repro", "merge")
    return clone


@pytest.fixture(scope="module")
def by_dvc(merged_by_dvc) -> Clone:
    merged_by_dvc.run("dvc", "repro")
    merged_by_dvc.commit("results")
    return merged_by_dvc


def test_weasel_goes_the_whole_way_and_dvc_merges_the_same(by_weasel, merged_by_dvc):
    clone, printed = by_weasel
    assert printed.count("\n") <= 90
    scores = json.loads(clone.results()["metrics/cpu.json"])["all_gold"]
    assert scores["f"] > 0.05  # it was 0.11; of ten steps it is 0
    assert not (clone.root / "training/cpu/model-best.checkpoint/arrays.npz").exists()
    resources = (clone.root / "training/cpu/resources.tsv").read_text()
    assert resources.startswith("seconds\tstep\twords_per_second\tmemory_mb")
    outputs = {path for path in clone.results() if not path.endswith(".spacy") and not path.startswith("training/")}
    assert outputs == {
        "corpus/README.md",  # it stays
        *(f"metrics/{name}.json" for name in ("merge", "cpu")),
        "metrics/merge.sha256",
        "plots/cpu.tsv",
        *(f"corpus/tasks/{name}" for name in ("auto.jsonl", "datasets.yml", "labelwise-brat.json")),
        *(f"corpus/{name}" for name in (*TABLES, "near_duplicates.jsonl", "import_checks.json")),
        *(f"corpus/{name}.json" for name in ("labels/ner", "labels/per_label", "tokenizer", "manifest")),
    }
    assert "corpus/manifest.json" in merged_by_dvc.results()
    assert merged_by_dvc.results().items() <= clone.results().items()
    assert sum(path.startswith("corpus/train/") for path in clone.results()) > 1
    assert {f"training/cpu/{name}.parquet" for name in ("texts", "pairs")} <= clone.results().keys()
    assert (clone.root / "training/check/findings.jsonl").is_file()
    page = (clone.root / "report/cpu.html").read_text(encoding="utf8")
    assert f"F1 {scores['f']:.3f} (2 texts: no interval) on 2 test texts with {scores['support']} gold spans" in page
    assert "0 of 3 labels are ready; 3 with too few test spans." in page
    assert len(page.encode("utf8")) <= 1_000_000


@pytest.mark.skipif(not PLAIN.is_dir(), reason="make .venv/.ready makes the environment of `make run`")
def test_the_environment_loads_the_pipeline_in_any_folder(by_weasel, tmp_path):
    clone, _ = by_weasel
    load = f"import spacy; print(spacy.load({str(clone.root / 'training/cpu/model-best')!r}).pipe_names[-1])"
    assert run_command(["python", "-c", load], tmp_path, clone.environment).stdout == "ner\n"


@pytest.mark.long
def test_dvc_gives_the_same(by_weasel, by_dvc):
    assert by_dvc.results() == by_weasel[0].results()


@pytest.mark.long
def test_a_report_shows_what_check_folds_found_and_never_starts_it(by_dvc):
    page, folds = by_dvc.root / "report/cpu.html", by_dvc.root / "training/check-folds/findings.jsonl"
    before = page.read_bytes()
    assert re.findall(STAGE_RUN, by_dvc.run("dvc", "repro", "report@cpu")) == ["report@cpu"]
    assert page.read_bytes() == before
    folds.parent.mkdir()
    head, *_ = (by_dvc.root / "training/check/findings.jsonl").read_bytes().splitlines(keepends=True)
    folds.write_bytes(head)  # it may find nothing
    by_dvc.run("dvc", "repro", "report@cpu")
    assert page.read_bytes() != before
    shutil.rmtree(folds.parent)
    assert re.findall(STAGE_RUN, by_dvc.run("dvc", "repro", "report@cpu")) == ["report@cpu"]
    assert page.read_bytes() == before


@pytest.mark.guarantee("second-run")
def test_a_second_run_does_nothing_but_the_report_which_leaves_its_file(by_weasel, merged_by_dvc):
    page = by_weasel[0].root / "report/cpu.html"
    before = page.read_bytes(), page.stat().st_mtime_ns
    again = by_weasel[0].run("weasel", "run", "all")
    assert re.findall(COMMAND_RUN, again) == ["report-cpu"], "which may show what another command has found since"
    assert again.count("Skipping") == SKIPPED
    assert (page.read_bytes(), page.stat().st_mtime_ns) == before
    again = merged_by_dvc.run("dvc", "repro", "merge")
    assert "Running stage" not in again
    assert "up to date" in again


@pytest.mark.long
def test_a_second_repro_does_nothing_but_the_report_which_leaves_its_bytes(by_dvc):
    """Its time changes, because DVC links each output to its cache again."""
    page = by_dvc.root / "report/cpu.html"
    before = page.read_bytes()
    assert re.findall(STAGE_RUN, by_dvc.run("dvc", "repro")) == ["report@cpu"]
    assert page.read_bytes() == before


def append(file: Path, text: str) -> None:
    file.write_text(file.read_text(encoding="utf8") + text, encoding="utf8")


@pytest.mark.long
def test_an_edit_of_the_report_and_another_version_train_nothing_and_one_of_the_loss_does(tmp_path):
    clone = Clone(tmp_path / "clone")
    clone.run("weasel", "run", "demo")
    clone.run("weasel", "run", "all")
    clone.run("dvc", "repro")
    append(clone.root / "labelwise/report/page.py", "\n# edited\n")
    version = clone.root / "labelwise/__init__.py"
    version.write_text(re.sub('__version__ = ".*"', '__version__ = "9.9.9"', version.read_text()))
    assert re.findall(COMMAND_RUN, clone.run("weasel", "run", "all")) == ["report-cpu"]
    assert re.findall(STAGE_RUN, clone.run("dvc", "repro")) == ["report@cpu"]
    append(clone.root / "spacy_per_label/loss.py", "\n# edited\n")
    assert "train-cpu" in re.findall(COMMAND_RUN, clone.run("weasel", "run", "all"))
    assert "train@cpu" in re.findall(STAGE_RUN, clone.run("dvc", "repro"))
    # Back at a seed that was trained before, DVC's run cache has the pipeline.
    first = clone.results()
    clone.set("seed", "1")
    assert "train@cpu" in re.findall(STAGE_RUN, clone.run("dvc", "repro"))
    assert clone.results() != first
    clone.set("seed", "0")
    printed = clone.run("dvc", "repro")
    assert "Stage 'train@cpu' is cached" in printed
    assert re.findall(STAGE_RUN, printed) == ["report@cpu"]
    assert clone.results() == first


@pytest.mark.guarantee("offline")
def test_nothing_leaves_the_machine(by_weasel, merged_by_dvc):
    """All commands of the tests above were watched."""
    clones = (by_weasel[0], merged_by_dvc)
    # DVC calls home from processes in the background, whose PYTHONPATH it sets: it says whether it would.
    printed = clones[1].run("dvc", "version", "-v")
    assert "Check for update is disabled" in printed
    assert "Analytics is disabled" in printed
    assert "Spawned" not in printed
    assert [clone.connections.read_text() for clone in clones if clone.connections.exists()] == []
    # It isn't that nothing was watched.
    look_up = "import socket; socket.create_connection(('dvc.example.org', 443))"
    assert "tests stay on this machine" in clones[0].run("python", "-c", look_up, status=1)
    assert clones[0].connections.read_text().startswith("socket.getaddrinfo dvc.example.org: ")
    clones[0].connections.unlink()


@pytest.mark.long
def test_a_pipeline_of_a_revision_can_be_had_without_the_project(by_dvc, tmp_path):
    clone = by_dvc
    clone.run("dvc", "remote", "add", "-f", "-d", "store", str(tmp_path / "store"))
    clone.commit("remote")
    clone.run("git", "tag", "v1.2")
    clone.run("dvc", "push", "train@cpu")
    (tmp_path / "elsewhere").mkdir()
    name, got = "training/cpu/model-best", tmp_path / "elsewhere/model-best"
    clone.run("dvc", "get", str(clone.root), name, "--rev", "v1.2", "-o", str(got))
    files = {path.relative_to(clone.root / name): path.read_bytes() for path in (clone.root / name).rglob("*.*")}
    assert {path.relative_to(got): path.read_bytes() for path in got.rglob("*.*")} == files
    assert files


@pytest.mark.guarantee("second-run")
@pytest.mark.long
def test_a_changed_variable_runs_what_it_touches_and_can_be_compared(by_dvc):
    clone = by_dvc
    clone.run("git", "checkout", "-qb", "longer")
    clone.set("steps", "20")
    assert re.findall(STAGE_RUN, clone.run("dvc", "repro", "evaluate@cpu")) == ["train@cpu", "evaluate@cpu"]
    clone.set("test_ratio", "0.4")
    ran = re.findall(STAGE_RUN, clone.run("dvc", "repro", "evaluate@cpu"))
    assert ran == ["merge", "train@cpu", "evaluate@cpu"]
    clone.commit("longer")
    comparison = json.loads(clone.run("python", "-m", "scripts.compare", "main", "longer", "--format", "json"))
    assert set(comparison["labels"]) == {"PERSON", "PLACE", "COMPANY"}
    assert "longer" in comparison["left_out"]
    diff = clone.run("dvc", "params", "diff", "main", "longer", "--md")
    assert re.search(r"\| project\.yml +\| vars\.steps +\| 40 +\| 20 +\|", diff), diff
    diff = clone.run("dvc", "metrics", "diff", "main", "longer", "--md")
    assert re.search(r"\| metrics/cpu\.json +\| all_gold\.support +\| \d+ +\| \d+ +\| \d+ +\|", diff), diff
    assert "failed" not in clone.run("dvc", "plots", "diff", "main", "longer", "-o", "plots_html")
    assert "plots/cpu.tsv" in (clone.root / "plots_html/index.html").read_text(encoding="utf8")


# The merge's manifest has the digests of all partitions, and the labels and rules of the rest.
BY_MANIFEST = ("corpus/train", "corpus/dev", "corpus/test", "corpus/labels", "corpus/tokenizer.json")
EXPLAINED = {
    # it checks that the data are the ones that were meant, and the lists of pipelines that DVC trains
    "convert-brat": ("assets", "dvc.lock", "configs/cpu.cfg"),
    # of the manifest, a training uses only what corpus/train determines, so a change of test alone doesn't repeat it;
    # the folder keeps an ended training for another goal
    "train-cpu": ("corpus/manifest.json", "training/cpu/model-best.checkpoint"),
}
# As with the demo corpus, which has no decisions; a report reads tables for decisions alone.
EMPTY = {"assets/decisions", *(f"corpus/{name}" for name in TABLES)}
PRINTED = ("/__init__.py", "/__main__.py")  # no output depends on these


@pytest.mark.guarantee("second-run")
@pytest.mark.long
def test_a_command_opens_its_dependencies_and_outputs_and_nothing_else(by_weasel):
    clone, _ = by_weasel
    append(clone.root / "project.yml", "check:\n  folds: 2\n  steps: 4\n")
    project = srsly.read_yaml(clone.root / "project.yml")
    # The skipped commands of other pipelines have the same ones, as test_project.py says.
    commands = {
        command["name"]: command
        for command in project["commands"]
        if "deps" in command and "outputs" in command and not re.search("gpu|small", command["name"])
    }
    unknown, idle = {}, {}
    for name, written in commands.items():
        values = json.dumps(written)
        command = json.loads(re.sub(r"\$\{vars\.(\w+)\}", lambda at: str(project["vars"][at[1]]), values))
        known = [*command["deps"], *command.get("outputs", ()), *command.get("outputs_no_cache", ())]
        # spaCy loads the entry points of spacy_per_label wherever it is installed, and loggers to list them.
        known += [*EXPLAINED.get(name, ()), "spacy_per_label", "labelwise/train/logger.py"]
        known += BY_MANIFEST if "corpus/manifest.json" in command["deps"] else ()
        with opened(clone.root) as all_files:
            for line in command["script"]:
                clone.run(*shlex.split(line))
        files = [file for file in all_files if not Path(file).name.startswith(".")]  # such as a lock beside an output
        unknown[name] = {file for file in files if not is_in(file, known) and not file.endswith(PRINTED)}
        untouched = {dep for dep in command["deps"] if not any(is_in(file, [dep]) for file in files)}
        idle[name] = untouched - EMPTY
    assert {name: files for name, files in unknown.items() if files} == {}
    assert {name: deps for name, deps in idle.items() if deps} == {}


def is_in(file: str, paths: list[str]) -> bool:
    return any(file == path or file.startswith(f"{path}/") for path in paths)
