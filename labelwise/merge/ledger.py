"""Add up the figures of all row groups of a merge's tables: its ledger."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from labelwise.corpus import queries
from labelwise.corpus.agreement import count_agreement
from labelwise.corpus.ledger import Ledger, Table, count_problems
from labelwise.corpus.tables import read_groups

Key = TypeVar("Key")


def make_ledger(
    corpus: Path, labels: Sequence[str], datasets: Sequence[str], renames: Mapping[str, Mapping[str, str]]
) -> Ledger:
    """Count what is in the account of a corpus, whose manifest needn't be there yet.

    labels, datasets, renames: those declared, which are counted even if there is none of them.
    """
    ledger = Ledger(
        labels={label: Counter() for label in labels},
        datasets={name: Counter() for name in datasets},
        renamed={
            name: {old: Counter({new: 0}) for old, new in of.items()} for name, of in sorted(renames.items()) if of
        },
    )
    texts = 0
    for group in read_groups(corpus, merged=False):
        texts += len(group.texts)
        for own, more in zip((ledger.rows, ledger.spans), queries.count_reasons(group), strict=True):
            own.update(more)
        ledger.texts.update(queries.count_texts(group))
        ledger.words.update(queries.count_words(group))
        ledger.same_texts += queries.count_same(group)
        ledger.partly.update(queries.count_partly(group, labels))
        ledger.out_of_order.update(queries.count_out_of_order(group))
        ledger.without_split_by += queries.count_hashed(group)
        by_label, by_split = queries.count_gold(group)
        for (label, name), n in (by_label + queries.count_states(group)).items():
            ledger.labels[label].update({name: n, "gold": n if name in queries.GOLD else 0})
        _add(ledger.gold, by_split)
        _add(ledger.complete, queries.count_complete(group))
        _add(ledger.datasets, queries.count_datasets(group))
        _add(ledger.undeclared, queries.count_undeclared(group))
        _add(ledger.other_split, queries.count_other_split(group))
        _add(ledger.replaced, queries.count_replaced(group))
        for (dataset, old, new), n in queries.count_renamed(group).items():
            ledger.renamed[dataset][old][new] += n
        for (reason, label, by), n in queries.count_lost(group).items():
            ledger.lost_spans.setdefault(reason, {}).setdefault(label, Counter())[by or ""] += n
        agreement, pairs = count_agreement(group)
        _merge(ledger.agreement, agreement)
        _merge(ledger.pairs, pairs)
    for counts in ledger.labels.values():
        counts["none"] = texts - counts["complete"] - counts["partial"]
    ledger.rows_read, ledger.spans_read = ledger.rows.total(), ledger.spans.total()
    ledger.problems = count_problems(ledger.rows, ledger.spans)
    return ledger


def _add(table: Table, counts: Mapping[tuple[str, str], int]) -> None:
    """Add counts by two keys."""
    for (one, other), n in counts.items():
        table.setdefault(one, Counter())[other] += n


def _merge(table: dict[Key, Counter[str]], counts: Mapping[Key, Counter[str]]) -> None:
    """Add counters by their keys."""
    for key, more in counts.items():
        table.setdefault(key, Counter()).update(more)
