"""The counts of a merge, as far as others read them in metrics/merge.json."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from labelwise.common.wording import counted


class Agreement(msgspec.Struct):
    """F of one annotator against another, None if neither marked anything, and the texts that both annotated."""

    f: float | None
    texts: int = 0


class MergeCounts(msgspec.Struct):
    """Some counts of the merge's ledger.

    agreement (dict): for each label of texts that were annotated twice.
    near_duplicates (dict): pairs of texts that are nearly equal, by the two splits that they are in.
    undeclared (dict): spans by data set and label, where the data set doesn't declare the label.
    texts (dict): by split, or by why they are in none.
    gold (dict): by split, accepted spans of each label.
    complete, partial (dict): by data set, the texts that it covers for each label, as a whole or in part.
    seconds (dict): by data set, the median time between successive answers.
    digest (str): of the corpus.
    problems (int): rows and spans that can't be used.
    compared (bool): nearly equal texts were looked for.
    renamed (dict): spans by data set, old and new name of their label.
    inferred (dict): data sets whose labels were inferred, with their number.
    """

    rows: dict[str, int]
    spans: dict[str, int]
    labels: dict[str, dict[str, int]]
    agreement: dict[str, Agreement] = {}
    near_duplicates: dict[str, int] = {}
    undeclared: dict[str, int] = {}
    texts: dict[str, int] = {}
    gold: dict[str, dict[str, int]] = {}
    complete: dict[str, dict[str, int]] = {}
    partial: dict[str, dict[str, int]] = {}
    seconds: dict[str, int] = {}
    digest: str = ""
    problems: int = 0
    compared: bool = True
    renamed: dict[str, int] = {}
    inferred: dict[str, int] = {}


def split_gold(counts: Mapping[str, int]) -> dict[str, int]:
    """Split a label's accepted spans, by its counts, into what a pipeline can learn of them and what it can't.

    An "entity" is flat. Another span is "learnt as well" by a head for its label, where it overlaps other labels alone.
    What is "lost" has no token boundaries, or overlaps a longer span of its label; nothing learns it.
    """
    entities, more = counts.get("entity", 0), counts.get("learnt as well", 0)
    return {"entity": entities, "learnt as well": more, "lost": counts.get("gold", 0) - entities - more}


def tell_gold(labels: Mapping[str, Mapping[str, int]]) -> str:
    """Say what can be learnt of all accepted spans, given the counts of each label; nothing if all are entities."""
    total: Counter[str] = Counter()
    for counts in labels.values():
        total.update(split_gold(counts))
    if total["entity"] == total.total():
        return ""
    return (
        f"{counted(total.total(), 'accepted span')}: "
        f"{counted(total['entity'], 'flat entity', 'flat entities')}; {total['learnt as well']:,} "
        f'learnt as well, in doc.spans["labels"] (recognizer: per-label); {total["lost"]:,} lost'
    )
