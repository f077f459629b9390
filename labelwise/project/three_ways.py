"""Merge a file three ways: as it was, as the user has it, and as the new version has it.

Lines are merged by `git merge-file`. Where both sides changed the same lines, the new version's are taken, which fit
its code, and both are shown in a file beside it. A value of project.yml is the user's where they changed it, whatever
the new version made of the lines around it, and also where its key has moved, from `vars` into a section.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from dvc.utils.serialize import dumps_yaml, loads_yaml

from labelwise.common.decoding import decode_yaml
from labelwise.common.errors import InputError
from labelwise.project.git import git

SPACES = re.compile(r"(?<=\S)\s+")  # but for those that a line begins with
# Sections whose content is merged line by line: a new version adds to their lists.
LISTS = ("directories", "assets", "workflows", "commands")


class Merged(NamedTuple):
    """A merged file.

    conflict (str): the file with both sides of what couldn't be decided, between marks; empty if there is nothing.
    """

    content: str
    conflict: str = ""


def merge_lines(base: str, ours: str, theirs: str, version: str) -> Merged:
    """Merge the lines of a file.

    base, ours, theirs (str): as it was, as the user has it, as the new version has it.
    version (str): the new one.
    RAISES (InputError): it isn't text.
    """
    names = ("yours", "as it was", f"labelwise {version}")
    with TemporaryDirectory() as folder:
        for name, content in zip(names, (ours, base, theirs), strict=True):
            (Path(folder) / name).write_text(content, encoding="utf8")
        labels = [part for name in names for part in ("-L", name)]
        shown, taken = (git(Path(folder), "merge-file", "-p", how, *labels, *names) for how in ("--diff3", "--theirs"))
    if shown.returncode > 127 or taken.returncode:
        raise InputError(f"git merge-file: {shown.stderr.decode(errors='replace').strip()}")
    return Merged(taken.stdout.decode(), shown.stdout.decode() if shown.returncode else "")


def merge_project(base: str, ours: str, theirs: str, version: str) -> Merged:
    """Merge a project.yml; see `merge_lines`.

    RAISES (InputError): the user's isn't what weasel reads.
    """
    decode_yaml(ours.encode(), dict, "project.yml", "write it as weasel reads it")
    old, own, new = (loads_yaml(text, typ="rt") for text in (base, ours, theirs))
    for section, key, value in _changed(old, own):
        if place := _find_place(new, section, key):
            new[place[0]][place[1]] = value
            old[section][key] = value
    base, ours, theirs = map(dumps_yaml, (old, own, new))
    # A value of another length moves the comment behind it.
    alike = {SPACES.sub(" ", line): line for line in base.splitlines()}
    ours = "".join(f"{alike.get(SPACES.sub(' ', line), line)}\n" for line in ours.splitlines())
    return merge_lines(base, ours, theirs, version)


def _changed(old: Mapping[str, Any], own: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield section, key and value of each value that the user has changed."""
    for section, content in own.items():
        if section not in LISTS and isinstance(content, Mapping) and isinstance(old.get(section), Mapping):
            for key, value in content.items():
                if key in old[section] and old[section][key] != value:
                    yield section, key, value


def _find_place(new: Mapping[str, Any], section: str, key: str) -> tuple[str, str] | None:
    """Find where a key of a section is in a new version; None if it is nowhere.

    What was a variable may have become a key of a section, as check_folds became folds of check.
    """
    places = [(section, key)]
    if section == "vars":
        places += [(other, name) for other in new for name in (key, key.removeprefix(f"{other}_"))]
    for other, name in places:
        if other not in LISTS and isinstance(new.get(other), Mapping) and name in new[other]:
            return other, name
    return None
