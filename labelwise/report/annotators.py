"""Agreement of each annotator with the others, for a page that may name people."""

from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

from labelwise.corpus.agreement import find_versions
from labelwise.corpus.ledger import pairwise_f
from labelwise.corpus.manifest import is_corpus
from labelwise.corpus.tables import read_groups


class Agreed(NamedTuple):
    """A person's agreement with the others.

    texts (int): texts that others annotated, too.
    f (float | None): F1 with the others over all labels; None without spans.
    labels (list): labels with F1, lowest first.
    """

    name: str
    texts: int
    f: float | None
    labels: list[tuple[str, float]]


def read_annotators(corpus: Path) -> list[Agreed]:
    """Compare each person's latest answers with everybody else's answers to the same texts, lowest F1 first.

    RAISES (InputError): if the merge's tables are missing or malformed.
    """
    texts, counts = Counter[str](), dict[str, dict[str, Counter[str]]]()
    for group in read_groups(corpus) if is_corpus(corpus) else ():
        for _, labels in find_versions(group):
            texts.update({version.who for versions in labels.values() for version in versions})
            for label, versions in labels.items():
                for one, other in permutations(versions, 2):
                    counts_of = counts.setdefault(one.who, {}).setdefault(label, Counter())
                    counts_of.update(both=len(one.marked & other.marked), spans=len(one.marked) + len(other.marked))
    rows = []
    for name, by_label in counts.items():
        total = sum(by_label.values(), Counter[str]())
        scored = ((label, pairwise_f(n["both"], n["spans"])) for label, n in sorted(by_label.items()))
        scores = sorted(((label, f) for label, f in scored if f is not None), key=lambda one: one[1])
        rows.append(Agreed(name, texts[name], pairwise_f(total["both"], total["spans"]), scores))
    return sorted(rows, key=lambda row: (row.f is None, row.f or 0.0, row.name))
