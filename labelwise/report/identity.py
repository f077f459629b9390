"""What a report is of: the commit, and the settings that aren't the defaults."""

from contextlib import closing
from pathlib import Path
from typing import Any

import yaml
from dvc.exceptions import DvcException
from dvc.scm import SCM
from scmrepo.exceptions import SCMError

DEFAULTS = Path(__file__).with_name("defaults.yml")
SECTIONS = ("merge", "check", "report", "package")


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
