"""The setting that decides a row's or span's outcome: a sentence per reason, with the merged value."""

from collections.abc import Mapping
from typing import Any

from labelwise.annotations import Reason

# A sentence begins with the deciding setting. `{duplicates}` and so on stand for values of the section merge at the
# time of the merge, and `{dataset}` for the name of the dataset.
ROWS: Mapping[Reason, str] = {
    Reason.MERGED: "",
    Reason.SUPERSEDED: "`duplicates: {duplicates}` in project.yml, unless the entry of {dataset} has its own",
    Reason.SAME_ANSWER: "a copy of an answer, with the same time and annotator, adds no vote",
    Reason.REJECTED: "the annotator rejected it",
    Reason.IGNORED: "the annotator ignored it",
    Reason.PREDICTION: "no annotator has saved it since it was exported",
    Reason.UNKNOWN_ANSWER: "its `answer` isn't accept, reject or ignore",
    Reason.UNSUPPORTED_INTERFACE: "`kind` of {dataset} in datasets.yml, or the row's `_view_id` if that is auto",
    Reason.SPLIT_CONFLICT: "`split` of the entries in datasets.yml: test before dev before train",
    Reason.NOT_ANNOTATED: "the tool exported the text without an annotation (brat: see `missing_ann`, `empty_ann`)",
    Reason.BAD_JSON: "correct the line",
    Reason.NO_TEXT: "correct the row, or name the key of its text, `text`, in datasets.yml",
    Reason.MALFORMED: "correct the row",
    Reason.INCOMPLETE_READ: "the file has more than could be read of it; correct the file",
    Reason.UNSUPPORTED_FORMAT: "correct the row; for .spacy files, declare `spans` of {dataset} in datasets.yml",
    Reason.CORRECTED: "gold was changed accordingly",
    Reason.CONFIRMED: "gold stays as it is",
    Reason.POLICY_QUESTION: "decide again when the annotation policy has an answer",
    Reason.REPLACED_DECISION: "a later decision is about the same span",
    Reason.STALE_DECISION: "the answer that it was made from has changed since; decide again in a new report",
}
SPANS: Mapping[Reason, str] = {
    Reason.ENTITY: "",
    Reason.SAME_SPAN: "`overlap: {overlap}` in project.yml",
    Reason.NESTED: "`overlap: {overlap}` in project.yml",
    Reason.CROSSING: "`overlap: {overlap}` in project.yml",
    Reason.MISALIGNED: "`alignment: {alignment}` in project.yml, and `infixes` in configs/tokenizer.yml",
    Reason.OUTVOTED: "`annotators: {annotators}` in project.yml",
    Reason.CONFLICT: "`conflicts: {conflicts}` in project.yml, unless a decision is about the span",
    Reason.REMOVED: "a decision in assets/decisions removed it",
    Reason.REJECTED_MISALIGNED: "`infixes` in configs/tokenizer.yml",
    Reason.NOT_FULLY_ANNOTATED: "`coverage: {coverage}` in project.yml",
    Reason.DUPLICATE: "an equal span of another answer counts, once",
    Reason.UNDECLARED: "`labels` of {dataset} in datasets.yml",
    Reason.INVALID: "correct the span",
    Reason.NOT_A_SPAN: "the annotation is about no part of the text",
    Reason.OTHER_LABEL: "`labels` in the section brat of project.yml",
    Reason.MENTION_DIFFERS: "`shifted` in the section brat of project.yml",
    Reason.DISCONTINUOUS: "`discontinuous` in the section brat of project.yml",
    Reason.NOT_DECODABLE: "`encoding` in the section brat of project.yml",
    **{reason: "" for reason in Reason if reason.startswith("in ")},  # its row says it
}
DECIDERS: Mapping[Reason, str] = {**ROWS, **SPANS}
# Of what chose a split.
SPLITS: Mapping[str, str] = {
    "declared": "declared by an entry in datasets.yml",
    "group": "with a nearly equal text, by `near_duplicates: {near_duplicates}`",
    "split_by": "by `split_by: {split_by}`",
    "hash": "by a hash of the text and `split_salt`",
}


def decider(reason: str, settings: Mapping[str, Any], dataset: str) -> str:
    """Name the deciding setting with its value, or another cause; empty without a decision."""
    what = DECIDERS[Reason(reason)].format(**{**settings, "dataset": repr(dataset)})
    return f"decided by {what}" if what.startswith("`") else what
