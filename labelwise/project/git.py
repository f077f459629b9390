"""Git, as a project uses it."""

import subprocess
from pathlib import Path

from labelwise.common.errors import InputError


def git(folder: Path, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, and give its status and what it prints.

    RAISES (InputError): there is no git.
    """
    try:
        return subprocess.run(  # noqa: S603 (git, with paths after --, or of ours)
            ["git", "-C", str(folder), *map(str, arguments)],  # noqa: S607 (whichever git the user has)
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise InputError("git isn't installed; DVC and `labelwise upgrade` need it") from error
