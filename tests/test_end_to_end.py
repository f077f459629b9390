"""The whole way, by weasel and by DVC, in a clone with a tiny corpus."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
import srsly

from labelwise.corpus.tables import TABLES
from tests.clone import PLAIN, SKIPPED, Clone, replace_once
from tests.conftest import run_command
from tests.project.opened import opened

COMMAND_RUN = r"=+ (\S+) =+\S*\nRunning command"  # weasel's, of a command that it doesn't skip
STAGE_RUN = r"Running stage '(.*?)'"  # DVC's


def make_clone(root: Path) -> Clone:
    """A clone in which a short training learns something."""
    clone = Clone(root)
    clone.set("cpu_steps", "40")
    replace_once(root / "configs/cpu.cfg", "learn_rate = 0.002", "learn_rate = 0.01")
    return clone


@pytest.fixture(scope="module")
def by_weasel(tmp_path_factory) -> tuple[Clone, str]:
    clone = make_clone(tmp_path_factory.mktemp("weasel"))
    return clone, clone.run("weasel", "run", "all")


@pytest.fixture(scope="module")
def merged_by_dvc(tmp_path_factory) -> Clone:
    clone = make_clone(tmp_path_factory.mktemp("dvc"))
    clone.commit("as set")
    clone.run("dvc", "repro", "merge")
    return clone


@pytest.fixture(scope="module")
def by_dvc(merged_by_dvc) -> Clone:
    merged_by_dvc.run("dvc", "repro", "report")
    merged_by_dvc.commit("results")
    return merged_by_dvc


def test_weasel_goes_the_whole_way_and_dvc_merges_the_same(by_weasel, merged_by_dvc):
    clone, printed = by_weasel
    assert printed.count("\n") <= 90
    scores = json.loads(clone.results()["metrics/cpu.json"])["all_gold"]
    assert scores["f"] > 0.3  # it was 0.56; of ten steps it is 0
    assert not (clone.root / "training/cpu/model-best.checkpoint").exists()
    resources = (clone.root / "training/cpu/resources.tsv").read_text()
    assert resources.startswith("seconds\tstep\twords_per_second\tmemory_mb")
    made = {path for path in clone.results() if not path.endswith(".spacy") and not path.startswith("training/")}
    assert made == {
        "corpus/README.md",  # it stays
        *(f"metrics/{name}.json" for name in ("merge", "cpu")),
        "plots/cpu.tsv",
        *(f"corpus/tasks/{name}" for name in ("auto.jsonl", "datasets.yml", "problems.jsonl", "report.json")),
        *(f"corpus/{name}" for name in (*TABLES, "near_duplicates.jsonl")),
        *(f"corpus/{name}.json" for name in ("labels/ner", "labels/per_label", "tokenizer", "manifest")),
    }
    assert "corpus/manifest.json" in merged_by_dvc.results()
    assert merged_by_dvc.results().items() <= clone.results().items()
    assert sum(path.startswith("corpus/train/") for path in clone.results()) > 1
    assert {f"training/cpu/{name}.parquet" for name in ("texts", "pairs")} <= clone.results().keys()
    assert (clone.root / "training/check/findings.jsonl").is_file()
    page = (clone.root / "report/cpu.html").read_text(encoding="utf8")
    assert f"F1 {scores['f']:.3f} on 2 test texts with {scores['support']} gold spans" in page
    assert "test knows too little of 3 of 3 labels." in page
    assert len(page.encode("utf8")) <= 1_000_000


@pytest.mark.skipif(not PLAIN.is_dir(), reason="make .venv/.ready makes the environment of `make run`")
def test_the_environment_loads_the_pipeline_and_has_the_command_in_any_folder(by_weasel, tmp_path):
    clone, _ = by_weasel
    load = f"import spacy; print(spacy.load({str(clone.root / 'training/cpu/model-best')!r}).pipe_names[-1])"
    assert run_command(["python", "-c", load], tmp_path, clone.environment).stdout == "ner\n"
    assert run_command(["labelwise", "merge", "--help"], tmp_path, clone.environment).stdout
    # In a folder that has its own code, that code runs, not the environment's.
    (clone.root / "scripts/own.py").write_text("def own_cli() -> None:\n    print(__file__)\n")
    printed = clone.run("python", "-m", "labelwise", "own")
    (clone.root / "scripts/own.py").unlink()
    assert printed == f"{clone.root / 'scripts/own.py'}\n"


@pytest.mark.long
def test_dvc_gives_the_same(by_weasel, by_dvc):
    assert by_dvc.results() == by_weasel[0].results()


@pytest.mark.long
def test_a_report_shows_what_check_folds_found_and_never_starts_it(by_dvc):
    page, folds = by_dvc.root / "report/cpu.html", by_dvc.root / "training/check-folds/findings.jsonl"
    before = page.read_bytes()
    assert re.findall(STAGE_RUN, by_dvc.run("dvc", "repro", "report")) == ["report"]
    assert page.read_bytes() == before
    folds.parent.mkdir()
    head, *_ = (by_dvc.root / "training/check/findings.jsonl").read_bytes().splitlines(keepends=True)
    folds.write_bytes(head)  # it may find nothing
    by_dvc.run("dvc", "repro", "report")
    assert page.read_bytes() != before
    shutil.rmtree(folds.parent)
    assert re.findall(STAGE_RUN, by_dvc.run("dvc", "repro", "report")) == ["report"]
    assert page.read_bytes() == before


def test_a_second_run_does_nothing(by_weasel, merged_by_dvc):
    again = by_weasel[0].run("weasel", "run", "all")
    assert re.findall(COMMAND_RUN, again) == ["report"], "which may show what another command has found since"
    assert again.count("Skipping") == SKIPPED
    again = merged_by_dvc.run("dvc", "repro", "merge")
    assert "Running stage" not in again
    assert "up to date" in again


def test_nothing_leaves_the_machine(by_weasel, merged_by_dvc):
    """All commands of the tests above, of weasel, DVC, spaCy and this project, were watched."""
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
def test_bare_commands_of_dvc_work_in_a_clone(by_dvc, tmp_path):
    """Optional stages, such as package, stop no pull unless somebody names them and doesn't run them."""
    clone = by_dvc
    clone.run("dvc", "remote", "add", "-f", "-d", "store", str(tmp_path / "store"))
    clone.commit("remote")
    clone.run("dvc", "push")
    elsewhere = f"cd {tmp_path}/other &&"
    clone.paste(f"git clone -q . {tmp_path}/other")
    assert "files fetched" in clone.paste(f"{elsewhere} dvc pull")
    for name, content in clone.results().items():
        assert (tmp_path / "other" / name).read_bytes() == content
    assert clone.paste(f"{elsewhere} dvc status").split() == ["report:", "always", "changed"]
    assert re.findall(STAGE_RUN, clone.paste(f"{elsewhere} dvc repro")) == ["report"]
    clone.paste(f"{elsewhere} sed -i 's/  stages: all/  stages: all package/' project.yml")
    clone.paste(f"{elsewhere} python -m scripts.update_dvc")
    printed = clone.run("bash", "-c", f"{elsewhere} dvc pull", status=1)
    assert re.search(r"Checkout failed for following targets:\s+dist\s+Is your cache", printed)


@pytest.mark.long
def test_a_pipeline_of_a_revision_can_be_had_without_the_project(by_dvc, tmp_path):
    clone = by_dvc
    clone.set("stages", "all package")
    clone.run("python", "-m", "scripts.update_dvc")
    clone.run("dvc", "repro", "package")
    clone.run("dvc", "remote", "add", "-f", "-d", "store", str(tmp_path / "store"))
    clone.commit("package")
    clone.run("git", "tag", "v1.2")
    clone.run("dvc", "push", "package", "train-cpu")
    (tmp_path / "elsewhere").mkdir()
    for name in ("dist", "training/cpu/model-best"):
        got = tmp_path / "elsewhere" / Path(name).name
        clone.run("dvc", "get", str(clone.root), name, "--rev", "v1.2", "-o", str(got))
        made = {path.relative_to(clone.root / name): path.read_bytes() for path in (clone.root / name).rglob("*.*")}
        assert {path.relative_to(got): path.read_bytes() for path in got.rglob("*.*")} == made
        assert made


@pytest.mark.long
def test_a_learning_curve_is_experiments_with_fewer_texts(by_dvc):
    clone = by_dvc
    clone.commit("before the experiments")
    changes = ("-S", "project.yml:vars.limit=choice(4,8)", "-S", "project.yml:vars.seed=3")
    clone.run("dvc", "exp", "run", "--queue", *changes, "evaluate-cpu")
    printed = clone.run("dvc", "exp", "run", "--run-all")
    assert sorted(map(int, re.findall(r"(?m)Texts of an epoch: (\d+) texts", printed))) == [4, 8]
    keep = ("--drop", ".*", "--keep", "Experiment|vars.limit|vars.seed|all_gold.f$")
    shown = clone.run("dvc", "exp", "show", "--no-pager", "--md", *keep)
    header, _, *rows = [line.split("|") for line in shown.splitlines() if line.startswith("|")]
    columns = ("vars.limit", "vars.seed", "all_gold.f")
    limit, seed, f = ([cell.strip() for cell in header].index(name) for name in columns)
    assert {(row[limit].strip(), row[seed].strip()) for row in rows} == {("0", "0"), ("4", "3"), ("8", "3")}
    assert all(0 <= float(row[f]) <= 1 for row in rows)
    assert clone.run("git", "status", "--porcelain", "project.yml") == ""


@pytest.mark.long
def test_a_changed_variable_runs_what_it_touches_and_can_be_compared(by_dvc):
    clone = by_dvc
    clone.run("git", "checkout", "-qb", "longer")
    clone.set("cpu_steps", "20")
    assert re.findall(STAGE_RUN, clone.run("dvc", "repro", "evaluate-cpu")) == ["train-cpu", "evaluate-cpu"]
    clone.set("test_ratio", "0.4")
    assert re.findall(STAGE_RUN, clone.run("dvc", "repro", "evaluate-cpu")) == ["merge", "train-cpu", "evaluate-cpu"]
    clone.commit("longer")
    made = json.loads(clone.run("python", "-m", "scripts.compare", "main", "longer", "--format", "json"))
    assert set(made["labels"]) == {"PERSON", "PLACE", "COMPANY"}
    assert "longer" in made["left_out"]
    diff = clone.run("dvc", "params", "diff", "main", "longer", "--md")
    assert re.search(r"\| project\.yml +\| vars\.cpu_steps +\| 40 +\| 20 +\|", diff), diff
    diff = clone.run("dvc", "metrics", "diff", "main", "longer", "--md")
    assert re.search(r"\| metrics/cpu\.json +\| all_gold\.support +\| \d+ +\| \d+ +\| \d+ +\|", diff), diff
    assert "failed" not in clone.run("dvc", "plots", "diff", "main", "longer", "-o", "plots_html")
    assert "plots/cpu.tsv" in (clone.root / "plots_html/index.html").read_text(encoding="utf8")


# The merge's manifest has the digests of all partitions, and the labels and rules of the rest.
BY_MANIFEST = ("corpus/train", "corpus/dev", "corpus/test", "corpus/labels", "corpus/tokenizer.json")
EXPLAINED = {
    # of it, a training takes what corpus/train determines, so that a change of test alone trains nothing anew
    "train-cpu": ("corpus/manifest.json",),
    # it is never skipped, as check-folds and train-curve would be started otherwise
    "report": ("training/check-folds", "metrics/train_curve.json"),
}
# As the demo corpus is used, about which nobody has decided anything; a report reads tables for decisions alone.
EMPTY = {"assets/brat", "assets/prodigy", "assets/decisions", *(f"corpus/{name}" for name in TABLES)}
PRINTED = ("/__init__.py", "/__main__.py")  # no output depends on these


@pytest.mark.long
def test_a_command_opens_its_dependencies_and_outputs_and_nothing_else(by_weasel):
    """Modules, too. All that can be run here, and skipped; the rest have the same ones, as test_project.py says."""
    clone, _ = by_weasel
    (clone.root / "assets/raw/letter.txt").write_text("Ms Ann Lee of Lundberg Ltd met Mr John Smith in Paris.")
    clone.set("steps", "4")
    project = srsly.read_yaml(clone.root / "project.yml")
    commands = {
        one["name"]: one
        for one in project["commands"]
        if not re.search("gpu|small", one["name"]) and one["name"] != "compare"
    }
    unknown, idle = {}, {}
    for name in [*commands, "report"]:  # again, as check-folds has run
        values = json.dumps(commands[name])
        command = json.loads(re.sub(r"\$\{vars\.(\w+)\}", lambda at: str(project["vars"][at[1]]), values))
        known = [*command["deps"], *command.get("outputs", ()), *command.get("outputs_no_cache", ())]
        # spaCy loads the entry points of spacy_per_label wherever it is installed.
        known += [*EXPLAINED.get(name, ()), "spacy_per_label"]
        known += BY_MANIFEST if "corpus/manifest.json" in command["deps"] else ()
        with opened(clone.root) as all_files:
            for line in command["script"]:
                clone.run(*shlex.split(line))
        files = [file for file in all_files if not Path(file).name.startswith(".")]  # such as a lock beside an output
        unknown[name] = {file for file in files if not is_in(file, known) and not file.endswith(PRINTED)}
        untouched = {dep for dep in command["deps"] if not any(is_in(file, [dep]) for file in files)}
        idle[name] = idle.get(name, untouched) & untouched - EMPTY
    assert {name: files for name, files in unknown.items() if files} == {}
    assert {name: deps for name, deps in idle.items() if deps} == {}


def is_in(file: str, paths: list[str]) -> bool:
    """Tell whether a file is one of these, or in such a folder."""
    return any(file == path or file.startswith(f"{path}/") for path in paths)
