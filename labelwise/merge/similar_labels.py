"""Labels that may be one: with nearly equal names, or for the same words in different data sets."""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice
from pathlib import Path

from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.doubts import Doubt
from labelwise.corpus.manifest import find_partitions
from labelwise.merge.rules.ledger import Ledger
from labelwise.sources.declarations import Declaration
from labelwise.sources.later_exports import join_entries, may_be_later, spans_of

TEXTS = 2000  # of train, whose forms are compared
LEAST_SPANS = 20  # of each of two labels
# Of the spans of each, those whose form is also marked as the other. Between halves of wet lab protocols, syntheses
# and LitBank, 21 of 45 labels reach that with themselves, and none with another (0.39 at most).
LEAST_SHARE = 0.5


def doubts_about_labels(
    ledger: Ledger, corpus: Path, declared: Mapping[str, Sequence[str]], entries: Mapping[str, tuple[Path, Declaration]]
) -> Iterator[tuple[Doubt, Declaration]]:
    """Yield the pairs of labels that may be one, each with the entry that makes one of them.

    declared (Mapping[str, Sequence[str]]): the labels of each data set; those of one are known to differ.
    entries (Mapping): of each data set, with the folder of its `datasets.yml`.
    """
    forms = count_forms(corpus) if ledger["texts", "train"] else {}
    for one, other in combinations(ledger.labels, 2):
        less, more = sorted((one, other), key=lambda label: ledger["labels", label, "gold"])
        if simplified(one) == simplified(other):
            why = "their names are nearly equal"
        elif any({one, other} <= {*labels} for labels in declared.values()) or not alike(forms, one, other):
            continue
        else:
            why = "most of their spans have forms that are marked as either"
        renamed, kept = (next(name for name, own in declared.items() if label in own) for label in (less, more))
        folder, entry = entries[renamed]
        doubt = Doubt(
            f"{less!r} and {more!r} may be one label: {why}.",
            f"If so, give convert-brat --rename {less}={more} for a brat corpus, or put this in place of the entry "
            f"{renamed!r} in datasets.yml:",
        )
        yield doubt, entry.rename_label(less, more)
        both = [own for name, (of, own) in entries.items() if name in (renamed, kept) and of == folder]
        if len(both) == 2 and may_be_later(spans_of(both[1], folder), spans_of(both[0], folder)):
            first, second = (repr(own.name) for own in both)
            doubt = Doubt(
                f"{second} may be a later export of {first}: most spans are in both.",
                f"If so, put this in place of the entries {first} and {second} in datasets.yml:",
            )
            yield doubt, join_entries(*both)


def simplified(label: str) -> str:
    """Leave out of a label's name what people write differently.

    >>> simplified("Persons") == simplified("PERSON")
    True
    """
    return unicodedata.normalize("NFKC", label).casefold().removesuffix("s")


def count_forms(corpus: Path) -> dict[str, Counter[bytes]]:
    """Count the forms of each label, as hashes of their words, in the first texts of train."""
    docs = (doc for file in find_partitions(corpus / "train") for doc in read_stored_docs(file))
    forms: dict[str, Counter[bytes]] = {}
    for doc in islice(docs, TEXTS):
        for start, end, label in doc.gold:
            forms.setdefault(doc.strings[label], Counter())[doc.words[start:end].tobytes()] += 1
    return forms


def alike(forms: Mapping[str, Counter[bytes]], one: str, other: str) -> bool:
    """Tell whether two labels have most of their forms in common, by the number of spans."""
    counts = [forms.get(label, Counter()) for label in (one, other)]
    both = counts[0].keys() & counts[1].keys()
    return all(
        found.total() >= LEAST_SPANS and sum(found[form] for form in both) >= LEAST_SHARE * found.total()
        for found in counts
    )
