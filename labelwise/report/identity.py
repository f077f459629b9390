"""The settings of a project that aren't the defaults."""

from pathlib import Path
from typing import Any

import yaml

DEFAULTS = Path(__file__).with_name("defaults.yml")
SECTIONS = ("merge", "check", "report", "package")


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
