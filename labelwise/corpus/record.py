"""Record the files of a trained pipeline, so that edited ones can be reported."""

import json
from collections.abc import Mapping
from pathlib import Path

from labelwise.base.files import list_digests

RECORD = "trained.json"


def write_record(pipeline: Path, training: str = "") -> None:
    """List the digests of a trained pipeline's files in its folder, and that of its training."""
    record = {"training": training, "files": list_digests(pipeline)}
    (pipeline / RECORD).write_text(json.dumps(record, indent=1), encoding="utf8")


def is_trained(pipeline: Path, training: str) -> bool:
    """Return whether a training of that digest has made a pipeline, as it is now."""
    try:
        record = json.loads((pipeline / RECORD).read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    return record.get("training") == training and not find_edited(pipeline, list_digests(pipeline))


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
