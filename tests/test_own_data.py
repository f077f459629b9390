import re
import shutil

import pytest

from tests.clone import DEV, PLAIN, Clone, call_dvc, replace_once
from tests.test_end_to_end import COMMAND_RUN, STAGE_RUN


def ends_badly(clone: Clone, *command: str) -> str:
    printed = clone.run("bash", "-c", f"{' '.join(command)} && exit 0; test $? -ne 0 && exit 9", status=9)
    return " ".join(printed.split())


@pytest.mark.guarantee("demo")
@pytest.mark.long
def test_with_data_of_ones_own_nobody_gets_a_report_on_the_demo(tmp_path):
    clone = Clone(tmp_path / "clone")
    assert "assets/demo/brat" in ends_badly(clone, "weasel", "run", "all")  # weasel's words, or DVC's
    assert "assets/demo/brat" in ends_badly(clone, "dvc", "repro")
    clone.run("weasel", "run", "demo")
    clone.run("weasel", "run", "all")
    clone.run("dvc", "repro")
    for name, content in (("brat/mine.txt", "Ann left"), ("prodigy/mine.jsonl", '{"text": "Ann left"}\n')):
        own = clone.root / "assets" / name
        own.write_text(content)
        for command in (["weasel", "run", "all"], ["dvc", "repro"]):
            printed = ends_badly(clone, *command)
            assert f"{own.parent.relative_to(clone.root)} has your own data" in printed
            assert "Write `data: assets`" in printed
        own.unlink()
    assert re.findall(COMMAND_RUN, clone.run("weasel", "run", "all")) == ["report-cpu"]


@pytest.mark.guarantee("demo")
def test_a_clone_that_git_and_dvc_brought_no_data_stops_and_names_dvc_pull(tmp_path):
    clone = Clone(tmp_path / "clone")
    clone.use_own_data()
    call_dvc(clone.root, "remote", "add", "-d", "store", str(tmp_path / "store"))
    clone.run("dvc", "repro", "merge")
    clone.commit("merged")
    call_dvc(clone.root, "push")
    nothing = clone.clone(tmp_path / "nothing")
    for command in ("dvc repro", "weasel run all", "dvc exp run --temp"):
        stops(nothing, "assets/brat", ends_badly(nothing, command))
    call_dvc(clone.root, "add", "assets/brat/mine")
    clone.commit("tracked")
    call_dvc(clone.root, "push")
    other = clone.clone(tmp_path / "brat")
    call_dvc(other.root, "pull", "assets/brat/mine.dvc", "convert-brat")
    shutil.rmtree(other.root / ".dvc/tmp", ignore_errors=True)
    stops(other, "assets/prodigy", " ".join(other.call("merge", status=1).split()))


def stops(clone: Clone, folder: str, printed: str) -> None:
    assert re.search(rf"{folder}: \S*dvc.lock knows \d+ files? in it, and \d+ (is|are) here", printed), printed
    assert printed.index("Fetch them: `dvc pull`") < printed.index("run `dvc add")
    assert not (clone.root / "corpus/manifest.json").exists()


@pytest.mark.long
def test_a_laptop_and_a_box_share_what_each_can_train(tmp_path, tiny_bert):
    """A small transformer, trained on the box's CPU, stands for the GPU's."""
    box = Clone(tmp_path / "box", programs=DEV)
    box.use_own_data()
    box.set("steps", "4")
    replace_once(box.root / "configs/gpu.cfg", 'name = "roberta-base"', f'name = "{tiny_bert}"')
    box.paste("dvc add assets/brat/mine assets/prodigy/*.jsonl")
    box.run("dvc", "remote", "add", "-d", "store", str(tmp_path / "store"))
    assert "Stage 'report@gpu' not found inside 'dvc.yaml' file" in ends_badly(box, "dvc", "repro", "report@gpu")
    replace_once(box.root / "project.yml", "  pipelines:\n  - cpu\n", "  pipelines:\n  - cpu\n  - gpu\n")
    output = ends_badly(box, "dvc", "repro", "train@gpu")
    assert "is for a GPU, and none can be used here" in output
    for name in ("train", "evaluate"):
        box.run("python", "-m", f"scripts.{name}", "gpu", *["--max-steps", "4"] * (name == "train"), "--gpu-id", "-1")
        box.run("dvc", "commit", "-f", f"{name}@gpu")
    ran = re.findall(STAGE_RUN, box.run("dvc", "repro"))
    assert sorted(ran) == ["check", "evaluate@cpu", "report@cpu", "report@gpu", "train@cpu"]
    box.commit("both")
    box.run("dvc", "push")
    laptop = box.clone(tmp_path / "laptop")
    laptop.environment = laptop.environment | {"PATH": laptop.environment["PATH"].replace(str(DEV), str(PLAIN))}
    assert "files fetched" in laptop.run("dvc", "pull")
    for name, content in box.results().items():  # but for an ended training that waits for another goal
        assert "model-best.checkpoint/" in name or (laptop.root / name).read_bytes() == content
    pipeline = laptop.root / "training/gpu/model-best/config.cfg"
    assert pipeline.is_file()
    assert laptop.run("dvc", "status").split() == [
        "report@cpu:",
        "always",
        "changed",
        "report@gpu:",
        "always",
        "changed",
    ]
    assert re.findall(STAGE_RUN, laptop.run("dvc", "repro")) == ["report@cpu", "report@gpu"]
    assert laptop.run("dvc", "checkout").strip() == ""
    assert laptop.run("git", "status", "--porcelain") == ""
    # After an edit of the data
    (laptop.root / "assets/brat/mine/more.txt").write_text("Ms Ann Lee met Mr Smith.")
    (laptop.root / "assets/brat/mine/more.ann").write_text("T1\tPERSON 3 10\tAnn Lee\n")
    output = ends_badly(laptop, "dvc", "repro")
    assert "is for a GPU, and none can be used here" in output
    assert "`dvc repro report@cpu`" in output
    laptop.paste("git checkout plots/gpu.tsv && dvc checkout train@gpu")  # DVC removes outputs before a command runs
    assert pipeline.is_file()
    ran = re.findall(STAGE_RUN, laptop.run("dvc", "repro", "report@cpu"))
    assert ran[-1] == "report@cpu"
    assert not [name for name in ran if "gpu" in name]
    laptop.commit("more")
    laptop.run("dvc", "push")
    assert "texts.train" in laptop.run("dvc", "metrics", "diff", "HEAD~1")
    assert "failed" not in laptop.run("dvc", "plots", "diff", "HEAD~1", "-o", "dvc_plots")
    # Seeds are experiments, which have the data that DVC tracks.
    laptop.run("dvc", "exp", "run", "--queue", "-S", "project.yml:vars.seed=choice(3,4)", "report@cpu")
    assert laptop.run("dvc", "exp", "run", "--run-all").count("Best pipeline: ") == 2
    laptop.run("dvc", "exp", "run", "--temp", "-S", "project.yml:vars.seed=5", "report@cpu")
    keep = ("--drop", ".*", "--keep", "Experiment|vars.seed|all_gold.f$")
    shown = laptop.run("dvc", "exp", "show", "--no-pager", "--md", *keep)
    header, _, *rows = [line.split("|") for line in shown.splitlines() if line.startswith("|")]
    seed = [cell.strip() for cell in header].index("vars.seed")
    assert {row[seed].strip() for row in rows} == {"0", "3", "4", "5"}
    assert laptop.run("git", "status", "--porcelain") == ""


@pytest.mark.long
def test_the_folder_of_data_may_have_blanks_and_parentheses(tmp_path):
    clone = Clone(tmp_path / "clone")
    clone.use_own_data()
    folder = clone.root / "assets/my data (new)"
    folder.mkdir()
    for name in ("brat", "prodigy"):
        shutil.move(clone.root / "assets" / name, folder / name)
    clone.set("data", "assets/my data (new)")
    clone.run("weasel", "run", "all")
    results = clone.results()
    clone.run("dvc", "repro")
    assert clone.results() == results
