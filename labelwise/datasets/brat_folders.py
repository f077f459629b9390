"""Find folders of a brat corpus that are named after splits, or that may be annotators or labels.

The section `brat` declares annotators and labels. A document's folder is the first path component that is neither
shared by all documents nor a split name: `alice/1.txt`, `train/alice/2.txt` and `corpus/alice/3.txt` are alice's.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations, takewhile
from pathlib import Path

from labelwise.annotations import Task
from labelwise.base.errors import InputError
from labelwise.base.text import counted, text_key
from labelwise.corpus.manifest import Split
from labelwise.datasets.entries import AnySplit
from labelwise.sources.brat import SUFFIXES

SPLIT_FOLDERS: Mapping[str, Split] = {
    "train": "train",
    **dict.fromkeys(("dev", "devel", "development", "valid", "validation", "val"), "dev"),
    "test": "test",
}
Log = Callable[[str], object]
CONF = "annotation.conf"  # brat's own: the labels that annotators could choose
MIN_COMMON_TEXTS = 2  # common texts of two folders whose meaning must be declared
MIN_LABEL_SPANS = 10  # spans of a folder whose labels are meaningful
MAX_LABEL_FOLDERS = 50
MAX_NAMED_FOLDERS = 6
SECTION = re.compile(r"^\[(\w+)\]\s*$")


class Folders:
    """Texts of a corpus's folders, and their spans by label; all paths share `depth` components."""

    def __init__(self, stems: Iterable[Path], brat_dir: Path) -> None:
        self.brat_dir = brat_dir
        paths = [stem.relative_to(brat_dir).parts[:-1] for stem in stems]
        self.depth = len([*takewhile(lambda parts: len({*parts}) == 1, zip(*paths, strict=False))])
        self.labels: dict[str, Counter[str]] = {}
        self._owners: dict[bytes, list[str]] = {}

    def name_of(self, path: str) -> str:
        """Return a document's folder; "" for the top."""
        parts = path.split("/")[self.depth : -1]
        return next((part for part in parts if part.lower() not in SPLIT_FOLDERS), "")

    def add(self, path: str, task: Task) -> None:
        """Count an annotated document."""
        name = self.name_of(path)
        self.labels.setdefault(name, Counter()).update(span.label for span in task.spans)
        owners = self._owners.setdefault(text_key(task.text), [])
        if name not in owners:
            owners.append(name)

    def check(self) -> None:
        """Refuse folders with the same texts, at least half of the smaller one's."""
        sizes = Counter(name for owners in self._owners.values() for name in owners)
        common = Counter(pair for owners in self._owners.values() for pair in combinations(sorted(owners), 2))
        pairs = [
            pair for pair, n in common.items() if n >= MIN_COMMON_TEXTS and 2 * n >= min(sizes[name] for name in pair)
        ]
        names = sorted({name for pair in pairs for name in pair})
        if names:
            texts = max(common[pair] for pair in pairs)
            first = names[:MAX_NAMED_FOLDERS]
            listed = ", ".join(f"{name or 'the top'} ({', '.join(sorted(self.labels[name]))})" for name in first)
            raise InputError(
                f"{self.brat_dir}: {counted(len(names), 'folder')} share {texts:,} texts: {listed}. Annotators, labels "
                "or versions? Add one of these lines to the section brat of project.yml\n"
                "  folders: annotators         # one folder per annotator, all labels\n"
                "  folders: labels             # one folder per label or group of labels\n"
                "  folders: versions           # successive versions; the last one in natural order counts"
            )

    def disjoint(self) -> dict[str, list[str]]:
        """List the folders' labels, if they share neither texts nor labels."""
        labels_of = {name: sorted(labels) for name, labels in sorted(self.labels.items())}
        shared = Counter(label for labels in labels_of.values() for label in labels).most_common(1)
        few = any(labels.total() < MIN_LABEL_SPANS for labels in self.labels.values())
        return labels_of if 1 < len(labels_of) <= MAX_LABEL_FOLDERS and not few and shared[0][1] == 1 else {}

    def shown(self, name: str, labels: Sequence[str], rename: Mapping[str, str], *, own: bool) -> list[str]:
        """List the labels that a folder was annotated for: annotation.conf's, or its `own`, or all."""
        used = self.labels.get(name, Counter())
        files = self.brat_dir.rglob(CONF) if name else ()
        inside = [file for file in files if self.name_of(file.relative_to(self.brat_dir).as_posix()) == name]
        if inside:
            configured = {rename.get(label, label) for file in inside for label in read_conf(file)}
            return [label for label in labels if label in configured or label in used]
        return [label for label in labels if label in used] if own else [*labels]


def read_conf(file: Path) -> list[str]:
    """List the entity types of a brat annotation.conf."""
    labels, section = [], ""
    for line in file.read_text(encoding="utf8", errors="replace").splitlines():
        if header := SECTION.match(line):
            section = header[1]
        elif section == "entities" and (word := line.split("#")[0].split()) and word[0][0] not in "!<-[":
            labels.append(word[0])
    return labels


def split_folders(stems: Sequence[Path], brat_dir: Path, log: Log) -> dict[str, Split]:
    """Find the split folders of a corpus: train, dev (or devel, valid, val ...), and test.

    They are at the top, or below single folders without annotations beside them. If dev or test has no folder, the
    texts of train are split by hash; see `split_others`.

    RETURNS (dict): splits by folder path, with a final slash.
    """
    annotated = [stem for stem in stems if any(stem.with_name(stem.name + suffix).exists() for suffix in SUFFIXES)]
    folders, inside = (
        {stem.relative_to(brat_dir).parts[:-1] for stem in paths} for paths in (stems, annotated or stems)
    )
    depth = 0
    while len(names := {parts[depth : depth + 1] for parts in inside}) == 1:
        below = {parts[depth + 1 : depth + 2] for parts in inside}
        if _are_splits(*names) and not all(map(_are_splits, below)):
            break
        depth += 1
        if () in names:
            return {}
    splits = {"/".join(p[: depth + 1]): SPLIT_FOLDERS[p[depth].lower()] for p in folders if _are_splits(p[depth:][:1])}
    others = {p[: i + 1] for p in folders for i in range(depth, len(p)) if _are_splits(p[i : i + 1])}
    unused = sorted(path for path in map("/".join, others) if not f"{path}/".startswith(tuple(f"{f}/" for f in splits)))
    if unused:
        log(
            f"These folders are named after splits, but not used: {', '.join(unused[:MAX_NAMED_FOLDERS])}. "
            "Folders of splits stand side by side, at the top or below single folders"
        )
    if not splits:
        return {}
    lacking = [split for split in ("dev", "test") if split not in splits.values()]
    used = {name: split for name, split in sorted(splits.items()) if split != "train" or not lacking}
    if used:
        log("Splits by folder: " + ", ".join(f"{name} is {split}" for name, split in used.items()))
    if lacking:
        without = " and ".join(lacking)
        train = "".join(f", and those in {name}," for name in sorted(splits.keys() - used.keys()))
        log(
            f"No folder for {without}: other texts{train} are split by hash, by "
            f"{' and '.join(f'{split}_ratio' for split in lacking)} in project.yml"
        )
    return {f"{name}/": split for name, split in used.items()}


def split_others(folders: Collection[Split]) -> AnySplit:
    """Return the split of texts outside split folders; if only dev or test has one, no other text joins it."""
    if ("dev" in folders) == ("test" in folders):
        return "auto"
    return "no-dev" if "dev" in folders else "no-test"


def _are_splits(names: Sequence[str]) -> bool:
    return any(name.lower() in SPLIT_FOLDERS for name in names)
