"""Which code made a result: digests of the files of this package, so that an edit elsewhere changes nothing."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


def digest_files(folders: Iterable[str]) -> dict[str, str]:
    """Digest the Python files of some folders of this package.

    folders (Iterable[str]): such as "common", or "../spacy_per_label"; folders inside them count too.
    RETURNS (dict[str, str]): digests by path, such as "labelwise/common/code.py", sorted.
    """
    files = sorted(file for folder in folders for file in (PACKAGE / folder).resolve().rglob("*.py"))
    return {
        file.relative_to(PACKAGE.parent).as_posix(): hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest()
        for file in files
    }


def digest_code(folders: Iterable[str], versions: Iterable[str] = ()) -> str:
    """Digest some folders of this package, and the versions of packages, as one."""
    facts = [*(f"{name} {digest}" for name, digest in digest_files(folders).items()), *versions]
    return hashlib.blake2b("\n".join(facts).encode(), digest_size=8).hexdigest()


def command_line(name: str) -> str:
    """Say how a command is called: `labelwise update-dvc`, or in a clone `python -m scripts.update_dvc`."""
    in_clone = (PACKAGE.parent / "scripts" / f"{name}.py").is_file()
    return f"python -m scripts.{name}" if in_clone else f"labelwise {name.replace('_', '-')}"


def digest_folder(folder: Path) -> str:
    """Digest the files of a folder, a pipeline's for example, with their names."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0")
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()
