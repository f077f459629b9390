"""labelwise.lock: which labelwise a project runs with.

All commands of the project depend on that file, in the place of the code, and refuse to run where other code is
installed: `init` and `upgrade` write it.
"""

import hashlib
import json
from pathlib import Path

from labelwise import __version__
from labelwise.common.code import PACKAGE
from labelwise.common.errors import InputError

LOCK = "labelwise.lock"


def current_lock() -> dict[str, str]:
    """Describe the code that is installed: its version, and a digest of all its files but for bytecode."""
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        digest.update(
            file.relative_to(PACKAGE).as_posix().encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest()
        )
    return {"version": __version__, "code": digest.hexdigest()}


def read_lock(project: Path) -> dict[str, str]:
    """Read the lock of a project.

    RAISES (InputError): there is none, or it isn't one.
    """
    file = project / LOCK
    try:
        found = json.loads(file.read_text(encoding="utf8"))
        return {"version": str(found["version"]), "code": str(found["code"])}
    except FileNotFoundError as error:
        raise InputError(f"{file}: there is no such file; give a folder that `labelwise init` made") from error
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise InputError(f"{file}: not what `labelwise init` writes; take it from git again") from error


def check_lock(project: Path) -> None:
    """Check that a project runs with the code that is installed.

    RAISES (InputError): it runs with another, an upgrade is moving files, or what `read_lock` raises.
    """
    if read_lock(project) != (current := current_lock()):
        version = read_lock(project)["version"]
        other = f"another build of {version}" if version == current["version"] else f"labelwise {current['version']}"
        raise InputError(
            f"{project / LOCK}: the project is of labelwise {version}, and {other} is installed: run "
            "`labelwise upgrade .`, or install that one"
        )
