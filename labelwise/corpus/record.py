"""Record the files of a trained pipeline, so that edited ones can be reported."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labelwise.base.files import list_digests

RECORD = "trained.json"


def write_record(pipeline: Path, changed: Mapping[str, tuple[Any, Any]] = {}) -> None:
    """Record what training changed of the config, and list the digests of a trained pipeline's files, in its folder.

    changed (Mapping): by dotted key, the value that the config has, and the one that was trained.
    """
    record = {"changed": changed, "files": list_digests(pipeline)}
    (pipeline / RECORD).write_text(json.dumps(record, indent=1), encoding="utf8")


def find_edited(pipeline: Path, digests: Mapping[str, str]) -> list[str]:
    """List the files that were changed, added or deleted since training; none without a record.

    digests (Mapping[str, str]): those of the current files.
    """
    try:
        trained = json.loads((pipeline / RECORD).read_bytes())["files"].items()
    except FileNotFoundError:
        return []
    except (ValueError, LookupError, AttributeError, TypeError):
        return [RECORD]
    now = {item for item in digests.items() if item[0] != RECORD}
    return sorted({name for name, _ in now ^ set(trained)})
