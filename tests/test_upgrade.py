import re
import subprocess
from copy import copy
from pathlib import Path

import pytest

from tests.clone import Clone, replace_once
from tests.conftest import ROOT

BEFORE = "ed21dc53"  # 0.3.0
SETTINGS = {"alignment": ("drop", "expand"), "conflicts": ("accept-wins", "reject-wins")}
ADDED = '{"text": "Ann Lee saw a cat", "spans": [{"start": 14, "end": 17, "label": "ANIMAL"}]}\n'


def add_data(clone: Clone) -> None:
    folder = clone.root.with_name("made")
    clone.run("python", "-m", "scripts.make_demo", str(folder), "--format", "both", "--docs", "24", "--labels", "3")
    clone.paste(f"mkdir -p assets/brat assets/prodigy; cp -r {folder}/brat assets/brat/mine")
    clone.paste(f"cp {folder}/prodigy/*.jsonl assets/prodigy")
    (clone.root / "assets/prodigy/ANIMAL.jsonl").write_text(ADDED)


def edit(clone: Clone) -> None:
    for name, (old, new) in SETTINGS.items():
        replace_once(clone.root / "project.yml", f"\n  {name}: {old} ", f"\n  {name}: {new} ")


def use_repository(clone: Clone, root: Path, source: Path, revision: str) -> Clone:
    repository = copy(clone)
    repository.root = root
    clone.run("git", "clone", "-q", "-o", "labelwise", str(source), str(root))
    repository.run("git", "checkout", "-q", "-B", "main", revision)
    return repository


@pytest.mark.long
def test_a_project_of_the_release_before_is_upgraded_and_merges_what_a_new_one_does(tmp_path):
    if subprocess.run(["git", "cat-file", "-e", BEFORE], cwd=ROOT, check=False, capture_output=True).returncode:
        pytest.skip(f"the commit {BEFORE} isn't here")
    new = Clone(tmp_path / "new")
    published = tmp_path / "labelwise"
    new.run("git", "clone", "-q", str(ROOT), str(published))
    # A commit of these files upon the history of this repository, as a release would be.
    new.paste(
        f"cd {published} && git checkout -q -B main && git rm -rqf . && git -C {new.root} archive HEAD | tar x && "
        "git add -A && git commit -qm release && git tag v9.9.9"
    )
    mine = use_repository(new, tmp_path / "mine", published, BEFORE)
    add_data(mine)
    edit(mine)
    replace_once(mine.root / "project.yml", "\n  cpu_steps: 600 ", "\n  cpu_steps: 60 ")
    mine.run("dvc", "repro", "merge")
    mine.commit("mine")
    page = (ROOT / "docs/install.md").read_text(encoding="utf8")
    fetch, take = re.findall(r"(?s)```sh\n(git (?:fetch|checkout --theirs).*?)```", page)
    printed = mine.run("bash", "-c", re.sub(r"v\d+\.\d+\.\d+", "v9.9.9", fetch), status=1)
    assert "CONFLICT (content): Merge conflict in project.yml" in printed
    assert re.search(r"(?m)^-  alignment: drop.*\n\+  alignment: expand", mine.paste(take))
    assert mine.run("git", "status", "--porcelain") == ""
    # Old keys and values are refused, each with its replacement.
    replace_once(mine.root / "project.yml", "\n  steps: ", "\n  cpu_steps: 60\n  steps: ")
    assert "cpu_steps: write steps" in mine.run("python", "-m", "scripts.report", "cpu", status=1)
    replace_once(mine.root / "project.yml", "\n  cpu_steps: 60", "")
    assert "Write `data: assets`" in " ".join(mine.run("python", "-m", "scripts.report", "cpu", status=1).split())
    fresh = use_repository(new, tmp_path / "fresh", published, "v9.9.9")
    add_data(fresh)
    contents = []
    for clone in (mine, fresh):
        replace_once(clone.root / "project.yml", "\n  data: assets/demo", "\n  data: assets")
        edit(clone)
        clone.run("dvc", "repro", "merge")
        contents.append({name: content for name, content in clone.results().items() if name.startswith("corpus/")})
    assert any(name.startswith("corpus/train/") for name in contents[0])
    assert contents[0] == contents[1]
