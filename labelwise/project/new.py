"""A new project: a clone's files, but for the code, with commands of the installed package.

They lie in the package's folder `clone`, where the build puts them (pyproject.toml); README and Makefile are in `own`.
"""

import re
import subprocess
from importlib.metadata import version
from pathlib import Path

from labelwise.base.errors import InputError
from labelwise.project.stages import as_dvc_writes, dvc_yaml

CLONES, OWN = (Path(__file__).with_name(name) for name in ("clone", "own"))
VERSION = "labelwise.version"  # all commands depend on this file, in the place of the code


def init(out: Path) -> None:
    """Write a project, as a git repository of its own unless the folder is in one.

    out (Path): a folder that isn't there, or is empty but for `.git`.
    RAISES (InputError): it has something in it, or this is a clone.
    """
    if not CLONES.is_dir():
        raise InputError(
            f"{CLONES}: no such folder: install labelwise (pip install ./spacy_per_label .), and call `labelwise`"
        )
    if out.is_dir() and any(path.name != ".git" for path in out.iterdir()):
        raise InputError(f"{out}: the folder isn't empty; give a new one, or see docs/install.md for an upgrade")
    for top in (CLONES, OWN):
        for file in sorted(path for path in top.rglob("*") if path.is_file()):
            place = out / file.relative_to(top)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(file.read_bytes())
    (out / VERSION).write_text(f"{version('labelwise')}\n", encoding="utf8")
    project = out / "project.yml"
    project.write_text(derive(project.read_text(encoding="utf8")), encoding="utf8")
    project.write_text(as_dvc_writes(project), encoding="utf8")
    (out / "dvc.yaml").write_text(dvc_yaml(project), encoding="utf8")
    inside = ["git", "-C", str(out), "rev-parse", "--is-inside-work-tree"]
    if subprocess.run(inside, capture_output=True, check=False).returncode:  # noqa: S603 (a folder, as its argument)
        subprocess.run(["git", "init", "-q", "-b", "main", str(out)], check=True)  # noqa: S603, S607


def derive(project: str) -> str:
    r"""Derive the project.yml of a project from a clone's.

    Commands are called by their names, and depend on the version in the place of the folders of code; the one that is a
    benchmark goes.

    >>> derive("python -m scripts.make_demo assets/demo\n  deps:\n  - assets/brat\n  - labelwise/demo\n")
    'labelwise make-demo assets/demo\n  deps:\n  - assets/brat\n  - labelwise.version\n'
    """
    project = re.sub(r"(?ms)^- name: check-gpu\n.*?(?=^- name: )", "", project)
    named = re.sub(r"python -m scripts\.(\w+)", lambda found: f"labelwise {found[1].replace('_', '-')}", project)
    return re.sub(r"(?m)(^  - (labelwise/.*|scripts/.*|spacy_per_label)\n)+", f"  - {VERSION}\n", named)
