"""Find a browser's newest download: files of one name have numbers, `decisions (1).jsonl` or `decisions(1).jsonl`."""

import os
import re
from pathlib import Path

from labelwise.base.errors import InputError


def download_folders() -> list[Path]:
    """List the folders for downloads: the desktop's, and ~/Downloads.

    https://www.freedesktop.org/wiki/Software/xdg-user-dirs/
    """
    home = Path.home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "user-dirs.dirs"
    lines = config.read_text(encoding="utf8", errors="replace") if config.is_file() else ""
    named = re.findall(r'(?m)^XDG_DOWNLOAD_DIR="(.+)"', lines)
    return list(dict.fromkeys([*(Path(one.replace("$HOME", str(home))) for one in named), home / "Downloads"]))


def find_newest_download(name: str) -> Path:
    """Find the newest download of a name."""
    stem, _, suffix = name.rpartition(".")
    numbered = re.compile(rf"{re.escape(stem)}( ?\(\d+\))?\.{re.escape(suffix)}")
    folders = download_folders()
    files = [file for folder in folders for file in folder.glob(f"*.{suffix}") if numbered.fullmatch(file.name)]
    if not files:
        places = " or ".join(map(str, folders))
        raise InputError(f"there is no {name} in {places}; save it in the report, or name a file")
    return max(files, key=lambda file: file.stat().st_mtime)
