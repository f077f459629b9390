"""Find folders of a brat corpus that are named after splits."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from labelwise.corpus.manifest import Split
from labelwise.datasets.entries import AnySplit
from labelwise.sources.brat import SUFFIXES

SPLIT_FOLDERS: Mapping[str, Split] = {
    "train": "train",
    **dict.fromkeys(("dev", "devel", "development", "valid", "validation", "val"), "dev"),
    "test": "test",
}
Log = Callable[[str], object]
MAX_NAMED_FOLDERS = 6  # folders that a message names


def split_folders(stems: Sequence[Path], brat_dir: Path, log: Log) -> dict[str, Split]:
    """Find the split folders of a corpus: train, dev (or devel, valid, val ...), and test.

    They are at the top, or below single folders without annotations beside them. If dev or test has no folder, the
    texts of train are split by hash; see `split_others`.

    RETURNS (dict): splits by folder path, with a final slash.
    """
    annotated = [stem for stem in stems if any(stem.with_name(stem.name + suffix).exists() for suffix in SUFFIXES)]
    folders, inside = ({one.relative_to(brat_dir).parts[:-1] for one in some} for some in (stems, annotated or stems))
    depth = 0
    while len(names := {parts[depth : depth + 1] for parts in inside}) == 1:
        below = {parts[depth + 1 : depth + 2] for parts in inside}
        if _are_splits(*names) and not all(map(_are_splits, below)):
            break
        depth += 1
        if () in names:
            return {}
    found = {"/".join(p[: depth + 1]): SPLIT_FOLDERS[p[depth].lower()] for p in folders if _are_splits(p[depth:][:1])}
    others = {p[: i + 1] for p in folders for i in range(depth, len(p)) if _are_splits(p[i : i + 1])}
    unused = sorted(path for path in map("/".join, others) if not f"{path}/".startswith(tuple(f"{f}/" for f in found)))
    if unused:
        log(
            f"These folders are named after splits, but not used: {', '.join(unused[:MAX_NAMED_FOLDERS])}. "
            "Folders of splits stand side by side, at the top or below single folders"
        )
    if not found:
        return {}
    lacking = [split for split in ("dev", "test") if split not in found.values()]
    kept = {name: split for name, split in sorted(found.items()) if split != "train" or not lacking}
    if kept:
        log("Splits by folder: " + ", ".join(f"{name} is {split}" for name, split in kept.items()))
    if lacking:
        without = " and ".join(lacking)
        train = "".join(f", and those in {name}," for name in sorted(found.keys() - kept.keys()))
        log(
            f"No folder for {without}: other texts{train} are split by hash, by "
            f"{' and '.join(f'{split}_ratio' for split in lacking)} in project.yml"
        )
    return {f"{name}/": split for name, split in kept.items()}


def split_others(folders: Collection[Split]) -> AnySplit:
    """Return the split of texts outside split folders, and of train's if dev or test has no folder.

    folders (Collection[str]): splits with folders. If only dev or test has one, no other text joins it.
    """
    if ("dev" in folders) == ("test" in folders):
        return "auto"
    return "no-dev" if "dev" in folders else "no-test"


def _are_splits(names: Sequence[str]) -> bool:
    return any(name.lower() in SPLIT_FOLDERS for name in names)
