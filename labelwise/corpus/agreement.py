"""Compare the spans of several annotators in the same texts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pyarrow.compute as pc

from labelwise.corpus.tables import Group, read_columns


class Version(NamedTuple):
    """An annotator's latest spans of a label in a text; an unnamed one has the name of the dataset."""

    who: str
    marked: frozenset[tuple[int, int]]
    place: str


def find_versions(group: Group) -> Iterator[tuple[str, dict[str, list[Version]]]]:
    """Yield texts annotated by several people for a label, with all versions by label, sorted by name."""
    rows = group.rows.filter(pc.greater(pc.list_value_length(group.rows["version"]), 0))
    if not len(rows):
        return
    spans = group.spans.filter(pc.is_in(group.spans["text"], pc.unique(rows["text"])))
    annotated: dict[tuple[str, int, str], set[tuple[int, int]]] = {}
    for text, row, label, start, end, verdict in read_columns(spans, "text", "row", "label", "start", "end", "verdict"):
        if verdict == "accept" and start is not None:
            annotated.setdefault((text, row, label), set()).add((start, end))
    texts: dict[str, dict[str, list[Version]]] = {}
    for one in rows.to_pylist():
        name = (f"{one['dataset']} {one['who']}" if one["anonymous"] else one["who"]) if one["who"] else one["dataset"]
        place = f"{one['file']}:{one['line']}"
        for label in one["version"]:
            spans = frozenset(annotated.get((one["text"], one["row"], label), ()))
            texts.setdefault(one["text"], {}).setdefault(label, []).append(Version(name, spans, place))
    for text, labels in texts.items():
        yield text, {label: _numbered(versions) for label, versions in labels.items()}


def find_settled(group: Group) -> set[tuple[str, str]]:
    """Return (text, label) pairs that a review has decided."""
    reviews = group.rows.filter(group.rows["review"]).select(["text", "covered"]).to_pylist()
    return {(row["text"], label) for row in reviews for label in row["covered"]}


def _numbered(versions: Sequence[Version]) -> list[Version]:
    names: Counter[str] = Counter()
    numbered = []
    for version in sorted(versions, key=lambda version: version.who):
        names[version.who] += 1
        count = names[version.who]
        numbered.append(version if count == 1 else version._replace(who=f"{version.who} ({count})"))
    return numbered


def count_agreement(group: Group) -> tuple[Counter[Any], Counter[Any]]:
    """Count "texts", spans in "both" of two versions, and all "spans", by label, and by pair of annotators."""
    labels: Counter[Any] = Counter()
    pairs: Counter[Any] = Counter()
    for _, versions_of in find_versions(group):
        met = set()
        for label, versions in versions_of.items():
            labels[label, "texts"] += 1
            for one, other in combinations(versions, 2):
                pair = (one.who, other.who)
                met.add(pair)
                for counts, key in ((labels, label), (pairs, pair)):
                    counts[key, "both"] += len(one.marked & other.marked)
                    counts[key, "spans"] += len(one.marked) + len(other.marked)
        pairs.update((pair, "texts") for pair in met)
    return labels, pairs
