"""The files of a new project: a clone's, but for the code, with commands of the installed package.

They lie in the package's folder `clone`, where the build puts them (pyproject.toml); README and Makefile are in `own`.
"""

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from labelwise.common.errors import InputError
from labelwise.project.lock import LOCK, current_lock

CLONES, OWN = (Path(__file__).with_name(name) for name in ("clone", "own"))


def derive(project: str) -> str:
    r"""Derive the project.yml of a project from a clone's.

    Commands are called by their names, and in the place of the folders of code that they depend on is the lock.

    >>> derive("python -m scripts.make_demo assets/demo\\n  deps:\\n  - assets/brat\\n  - labelwise/demo\\n")
    'labelwise make-demo assets/demo\\n  deps:\\n  - assets/brat\\n  - labelwise.lock\\n'
    """
    named = re.sub(r"python -m scripts\.(\w+)", lambda found: f"labelwise {found[1].replace('_', '-')}", project)
    return re.sub(r"(?m)(^  - labelwise/.*\n)+", f"  - {LOCK}\n", named)


def make_files() -> dict[str, bytes]:
    """Make the files of a project of this version, by path.

    RAISES (InputError): this is a clone, and not the installed package.
    """
    if not CLONES.is_dir():
        raise InputError(f"{CLONES}: there is no such folder: install labelwise (pip install .), and call `labelwise`")
    found = {
        file.relative_to(top).as_posix(): file.read_bytes()
        for top in (CLONES, OWN)
        for file in sorted(top.rglob("*"))
        if file.is_file()
    }
    project = write_project(derive(found["project.yml"].decode()))
    return {**found, **project, LOCK: (json.dumps(current_lock(), indent=1) + "\n").encode()}


def write_project(content: str) -> dict[str, bytes]:
    """Write project.yml as DVC writes it, and dvc.yaml.

    RAISES (InputError): what `stages` raises.
    """
    from labelwise.project.stages import as_dvc_writes, dvc_yaml  # imports DVC, which takes a second

    with TemporaryDirectory() as folder:
        file = Path(folder) / "project.yml"
        file.write_text(content, encoding="utf8")
        file.write_text(as_dvc_writes(file), encoding="utf8")
        return {"project.yml": file.read_bytes(), "dvc.yaml": dvc_yaml(file).encode()}
