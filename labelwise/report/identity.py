"""What a report is of: date, commit, corpus, settings that aren't the defaults, and how long training took."""

from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from dvc.exceptions import DvcException
from dvc.scm import SCM
from scmrepo.exceptions import SCMError

from labelwise.evaluate.results import Results

DEFAULTS = Path(__file__).with_name("defaults.yml")
SECTIONS = ("merge", "check", "report", "package")


class Identity(NamedTuple):
    """What a report is of.

    commit (str): the commit, and whether files that git tracks differ from it; empty outside of a repository.
    corpus (str): the first digits of a digest of the corpus.
    texts (dict): by split.
    settings (dict): what project.yml sets otherwise than the project does.
    seconds (float): of training; 0 if it isn't known.
    """

    made: date
    commit: str
    corpus: str
    texts: dict[str, int]
    settings: dict[str, Any]
    seconds: float


def identify(root: Path, results: Results, today: date) -> Identity:
    """Find out what a report is of."""
    merge, resources = results.merge, results.resources
    return Identity(
        today,
        find_commit(root),
        merge.digest[:8] if merge else "",
        {split: n for split in ("train", "dev", "test") if (n := merge.texts.get(split, 0))} if merge else {},
        changed_settings(root / "project.yml"),
        max(resources["seconds"], default=0.0) if resources else 0.0,
    )


def find_commit(root: Path) -> str:
    """Name the commit of a folder, and say if files aren't as they are there; empty if there is none."""
    try:
        with closing(SCM(str(root), search_parent_directories=True)) as scm:
            changed = " with changes" if scm.is_dirty(untracked_files=False) else ""
            return f"{scm.get_rev()[:7]}{changed}"
    except (DvcException, SCMError):
        return ""


def changed_settings(project: Path) -> dict[str, Any]:
    """List the variables of a project.yml that aren't the defaults, and keys of its sections, as merge.split_salt."""
    defaults = yaml.safe_load(DEFAULTS.read_text(encoding="utf8"))
    try:
        content = yaml.safe_load(project.read_text(encoding="utf8"))
        settings = dict(content["vars"])
        for section in SECTIONS:
            settings |= {f"{section}.{key}": value for key, value in (content.get(section) or {}).items()}
        return {name: value for name, value in settings.items() if name not in defaults or defaults[name] != value}
    except (OSError, ValueError, yaml.YAMLError, LookupError, TypeError, AttributeError):
        return {}
