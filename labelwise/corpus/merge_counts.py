"""The counts of a merge, as far as others read them in metrics/merge.json."""

import msgspec


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
    digest: str = ""
    problems: int = 0
    compared: bool = True
    renamed: dict[str, int] = {}
    inferred: dict[str, int] = {}
