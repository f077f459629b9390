"""Import checks of the corpus: is it fit for training? They run if all datasets were read as intended."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product

import msgspec
import pyarrow.compute as pc

from labelwise.annotations import Reason
from labelwise.corpus.agreement import find_settled
from labelwise.corpus.import_checks import EMPTY_SPLIT, EMPTY_TRAIN, FILL_SPLIT, FILL_TRAIN, NO_TEXT, OTHER_HASH
from labelwise.corpus.ledger import Ledger, pairwise_f
from labelwise.corpus.manifest import SPLITS, Split
from labelwise.corpus.queries import count, where
from labelwise.corpus.tables import read_columns, read_groups
from labelwise.corpus.tokenizer import has_rules
from labelwise.merge.check_kinds import (
    MIN_SPANS,
    Data,
    Evidence,
    Kind,
    Merged,
    dataset_check,
    each_of,
    largest_first,
    some,
)
from labelwise.merge.commit import first_problem
from labelwise.merge.figures import USED
from labelwise.merge.rules.policies import unknown_annotators
from labelwise.merge.rules.settings import load_tokenizer
from labelwise.merge.rules.splits import hashed_split

MIN_SAME_SPANS = 0.8  # share of a label's spans that another label has, too
MIN_OTHER_SPLIT = 0.1  # share of a dataset's rows
MIN_SAME_PERSON_F = 0.97  # F1 between two annotators
MIN_TEST_TEXTS = 20
MAX_SALTS = 1000  # that are tried
MIN_SHORT, MAX_SHORT = 3, 4  # letters of a short label, such as LOC
# In names of exports: a date, a version.
VERSION = re.compile(r"(?i)[\W_](?:\d{4}([\W_]?\d\d){0,2}|v\d+|final|new|old|copy|latest)(?![^\W_])")
MIN_OVERLAPPED = 0.8  # share of a label's spans


# Queries that are too long for the table.


def _too_few(merged: Merged) -> bool:  # too few texts to fill the splits
    return 0 < sum(merged.ledger.texts[split] for split in SPLITS) < len(SPLITS)


def _empty_splits(merged: Merged, *names: Split) -> Iterator[Evidence]:
    """Find empty splits that a hash could have filled; suggest a salt that fills all."""
    settings, texts = merged.settings, merged.ledger.texts
    if _too_few(merged):
        return
    dev, test = settings.dev_ratio, settings.test_ratio
    shares: dict[Split, float] = {"train": 1 - dev - test, "dev": dev, "test": test}
    filled = {split for split, share in shares.items() if share > 0}
    empty = [split for split in names if split in filled and not texts[split]]
    chosen: dict[str, str] = {}
    for group in read_groups(merged.corpus, merged=False, columns=("text", "split", "chosen_by")) if empty else ():
        inside = group.texts.filter(pc.is_valid(group.texts["split"]))
        chosen |= read_columns(inside, "text", "chosen_by")
    if chosen and {*chosen.values()} == {"declared"}:
        return
    by_hash = {dataset.split for dataset in merged.datasets} == {"auto"} and settings.near_duplicates != "group"
    by_hash = by_hash and not settings.split_by and len(chosen) >= len(filled)
    salts = map(str, range(1, MAX_SALTS)) if by_hash else ()
    salted = ((salt, msgspec.structs.replace(settings, split_salt=salt)) for salt in salts)
    salt = next((salt for salt, new in salted if {hashed_split(key, new) for key in chosen} == filled), "")
    for split in empty:
        yield Evidence(values={"split": split, "salt": salt})


def _unused_renames(merged: Merged) -> list[Evidence]:
    unused = [
        f"{name}: {old} to {new}"
        for name, of in merged.ledger.renamed.items()
        for old, to in of.items()
        for new, spans in to.items()
        if not spans
    ]
    return some(len(unused), labels=sorted(unused))


def _same_annotator(merged: Merged) -> Iterator[Evidence]:
    for (one, other), counts in merged.ledger.pairs.items():
        f = pairwise_f(counts["both"], counts["spans"]) or 0.0
        anonymous = {one, other} <= merged.ledger.datasets.keys()
        numbered = re.fullmatch(re.escape(min(one, other)) + r"[\W\d_]+", max(one, other))
        dated = VERSION.sub("", one) == VERSION.sub("", other)
        if anonymous and counts["both"] >= MIN_SPANS and (f >= MIN_SAME_PERSON_F or numbered or dated):
            part = min(one, other, key=lambda name: merged.ledger.datasets[name]["texts"])
            whole = f == 1 and counts["texts"] == merged.ledger.datasets[part]["texts"]
            yield from some(counts["texts"], one=one, other=other, f=f, part=part if whole else "")


def _without_spans(data: Data) -> list[Evidence]:
    n = data.figures.rows[Reason.MERGED]
    return some(n >= MIN_SPANS and not data.figures.spans and n, labels=[*data.dataset.labels])


def _unknown_annotators(merged: Merged) -> list[Evidence]:
    people = {who for figures in merged.figures.values() for who in figures.people if who is not None}
    names = unknown_annotators(merged.settings.annotators, people)
    return some(len(names), names=names)


def _unmatched_people(data: Data) -> list[Evidence]:
    known = {who for who in data.figures.people if who is not None}
    names = sorted({*data.dataset.annotators.values()} - known) if known else []
    return some(len(names), names=names, known=sorted(filter(None, known)))


def _out_of_order(merged: Merged) -> list[Evidence]:
    counts = Counter({name: figures.out_of_order for name, figures in merged.figures.items() if figures.out_of_order})
    return some(counts.total(), datasets=largest_first(counts))


def _without_split_key(merged: Merged) -> list[Evidence]:
    groups = read_groups(merged.corpus, merged=False, columns=("text", "chosen_by")) if merged.settings.split_by else ()
    texts = sum(count(group.texts, "chosen_by")["hash"] for group in groups)
    return some(texts, key=merged.settings.split_by)


def _outvoted_spans(merged: Merged) -> list[Evidence]:
    spans = 0
    for group in read_groups(merged.corpus, merged=False) if merged.ledger.spans[Reason.OUTVOTED] else ():
        outvoted, settled = where(group.spans, "reason", [Reason.OUTVOTED]), find_settled(group)
        spans += sum(pair not in settled for pair in read_columns(outvoted, "text", "label"))
    return some(spans)


def _labels_without_gold(merged: Merged, split: str) -> list[Evidence]:
    gold = merged.ledger.gold.get(split) or Counter()
    labels = sorted(label for label in merged.ledger.labels if not gold[label])
    return some(len(labels), labels=labels) if merged.ledger.texts[split] and not _too_few(merged) else []


def _unrelated_datasets(merged: Merged) -> list[Evidence]:
    """Find groups of datasets that share neither texts nor labels (also `absent` ones); name one of each."""
    groups: dict[str, set[str]] = {dataset.name: {dataset.name} for dataset in merged.datasets}
    labels: dict[str, str] = {}
    shared = [(name, other) for name, figures in merged.figures.items() for other in figures.shared if name in groups]
    named = [
        (dataset.name, labels.setdefault(label, dataset.name))
        for dataset in merged.datasets
        for label in (*dataset.labels, *dataset.absent)
    ]
    for name, other in (*shared, *named):
        if groups[name] is not groups[other]:
            joined = groups[name] | groups[other]
            groups.update(dict.fromkeys(joined, joined))
    apart = [dataset for dataset in merged.datasets if merged.ledger.datasets[dataset.name]["rows"]]
    names = [*{id(groups[dataset.name]): dataset.name for dataset in reversed(apart)}.values()][::-1]
    return some(merged.settings.coverage == "by-label" and len(names) > 1, names=names)


def _overlapped_labels(data: Data) -> Iterator[Evidence]:
    used = data.figures.labels(*USED)
    same = {evidence.values["old"] for evidence in _same_spans(data.merged.ledger)}
    lost: Counter[str] = Counter()
    for (label, _), n in data.figures.overlapped.items():
        lost[label] += n
    for label, n in lost.items():
        many = label not in same and n >= max(MIN_SPANS, MIN_OVERLAPPED * used[label])
        if many and data.merged.settings.overlap == "longest":
            winners = {other: count for (one, other), count in data.figures.overlapped.items() if one == label}
            yield Evidence(n, {"all": used[label], "label": label, "others": [*largest_first(winners)]})


def _similar_labels(merged: Merged) -> Iterator[Evidence]:
    """Find labels with nearly equal names, and those that are short, such as LOC, for a label of other texts."""
    labels = merged.ledger.labels
    renamed: set[str] = set()
    for pair in combinations(sorted(labels, key=lambda label: -labels[label]["gold"]), 2):
        one, other = sorted(pair, key=len)
        short = MIN_SHORT <= len(one) <= MAX_SHORT and other.casefold().startswith(one.casefold())
        short = short and other[len(one) :].isalpha() and _are_apart(merged, one, other)
        new, old = pair
        if (short or simplify(one) == simplify(other)) and not renamed & {*pair}:
            renamed.add(old)
            yield Evidence(values={"old": old, "new": new})


def _are_apart(merged: Merged, one: str, other: str) -> bool:
    """Return whether no dataset with one of two labels has the other, or texts of one with the other."""
    one_of, other_of = ({data.name for data in merged.datasets if label in data.labels} for label in (one, other))
    pairs = [*product(one_of, other_of), *product(other_of, one_of)]
    return not any(name == second or second in merged.figures[name].shared for name, second in pairs)


def simplify(label: str) -> str:
    """Fold a label's case, Unicode form, plural, and the separators of its words.

    >>> simplify("Birth Places"), simplify("BIRTH_PLACE")
    ('birthplace', 'birthplace')
    """
    return re.sub(r"[\s_-]", "", unicodedata.normalize("NFKC", label).casefold()).removesuffix("s")


def _same_spans(ledger: Ledger) -> Iterator[Evidence]:
    for old, of in ledger.dropped_spans.get(Reason.SAME_SPAN, {}).items():
        for new, n in of.items():
            gold = [ledger.labels[label]["gold"] for label in (old, new)]
            if n >= max(MIN_SPANS, MIN_SAME_SPANS * min(gold)):
                yield from some(n, all=gold[0], old=old, new=new)


def _renamed_elsewhere(data: Data) -> Iterator[Evidence]:
    renames = data.merged.ledger.renamed.get(data.dataset.name, {})
    targets = {new for to in renames.values() for new in to}
    for old, to in renames.items():
        if old in data.merged.ledger.labels and old not in targets:
            yield Evidence(values={"old": old, "new": min(to)})


def _tokenizer_without_rules(merged: Merged) -> list[Evidence]:
    rules, nlp = merged.settings.tokenizer, load_tokenizer(merged.settings).nlp
    extended = bool(rules.infixes or rules.no_exceptions) and not has_rules(nlp)
    return some(extended, tokenizer=type(nlp.tokenizer).__name__)


def _files_of_other_labels(data: Data) -> list[Evidence]:
    ledger, dataset = data.merged.ledger, data.dataset
    lost = [label for label in dataset.labels if not ledger.labels[label]["gold"]]
    if len(dataset.files) == 1 or len(dataset.labels) == 1 or not ledger.spans[Reason.IN_SUPERSEDED]:
        return []
    return some(len(lost), labels=lost, files=len(dataset.files))


ANNOTATE = "Annotate some texts fully (ner.manual, ner.correct)."
MORE_TEST = "Annotate more texts, raise test_ratio in project.yml, or declare a dataset with split: test."
RENAME = (
    "add `rename: {{{old!y}: {new!y}}}` to its entries in datasets.yml, and list {new!r} in their `labels` instead."
)
OR_SALT, SALT = f"{{salt:?{OTHER_HASH}}}", "{salt:?split_salt: '%s'}"
SMALL_TEST, NO_GOLD_IN_TEST, NOT_FULLY_ANNOTATED = "small test", "no gold in test", "not fully annotated"

# Is the corpus good for training? Asked only if all datasets were read as intended.
ADVICE: tuple[Kind, ...] = (
    Kind(
        "problems",
        lambda merged: some(n := merged.ledger.problems, quotes=[first_problem(merged.corpus)] if n else []),
        "{n:row or span|rows or spans} can't be used.",
        "`python -m scripts.why corpus --problems` lists each with its dataset, file, line and reason.",
    ),
    Kind(
        "undeclared labels",
        lambda merged: each_of(
            "labels", {name: figures.labels(Reason.UNDECLARED) for name, figures in merged.figures.items()}, "{}: {}"
        ),
        "Spans of undeclared labels aren't used: {labels}.",
        "If the texts were annotated for a label, add it to the labels of their dataset in datasets.yml.",
    ),
    Kind(
        "unused renames",
        _unused_renames,
        "`rename` lists labels that don't occur: {labels}.",
        "Correct `rename` in datasets.yml.",
    ),
    Kind(
        NOT_FULLY_ANNOTATED,
        lambda merged: some(
            len(labels := [label for label, counts in merged.ledger.labels.items() if not counts["complete"]]),
            labels=labels,
        ),
        "No text is fully annotated for {labels:label|labels}; accepted and rejected spans alone teach the model "
        "little.",
        f"{ANNOTATE} By default, training excludes {{labels:~this label|these labels}}.",
    ),
    Kind(
        "not compared",
        lambda merged: some(merged.settings.near_duplicates == "off"),
        "Near-duplicates between training and test were not checked.",
        "Set near_duplicates: report, or group, in project.yml.",
    ),
    Kind(
        "nearly equal texts",
        lambda merged: some(
            sum(of.total() for of in merged.ledger.near_duplicates.values()),
            test=sum(of["test"] for of in merged.ledger.near_duplicates.values()),
        ),
        "{n:pair} of nearly equal texts in two splits; {test:,} of them with a text in test.",
        "Set near_duplicates: group in project.yml to keep them in one; corpus/near_duplicates.jsonl has each.",
    ),
    dataset_check(
        "texts of other splits",
        lambda data: [
            Evidence(rows, {"other": other})
            for other, rows in data.figures.split_conflict.items()
            if rows >= MIN_OTHER_SPLIT * data.figures.rows.total()
        ],
        "{n:answer} left out; {other!r} declares another split for their texts.",
        "A text is in one split: test before dev before train. Take these texts out of one of the two datasets.",
    ),
    Kind(
        "replaced answers",
        lambda merged: each_of(
            "datasets", {name: figures.replaced_by for name, figures in merged.figures.items()}, "{} by {}"
        ),
        "{n:answer was|answers were} replaced by a later answer of the same annotator in another dataset: {datasets}.",
        "If two people share a name, give an entry `annotator: {{NAME: ANOTHER}}` in datasets.yml.",
    ),
    Kind(
        "unknown annotators",
        _unknown_annotators,
        "Unknown {names:~annotator|annotators} in `annotators`: {names!r}.",
        "Correct `annotators` in project.yml.",
        people=True,
    ),
    dataset_check(
        "unmatched annotators",
        _unmatched_people,
        "`annotator` names {names!r}, and no answer is theirs.",
        "Correct it in datasets.yml: it maps names in answers to people, such as `{{1: ann}}`, or names who gave "
        "anonymous answers. The names here: {known!r}.",
        people=True,
    ),
    Kind(
        "same annotator",
        _same_annotator,
        "{one!r} and {other!r} are anonymous, so they count as two annotators of {n:text} (F1 {f:.3f}). Same person?",
        "{part:?'%s' is a part of the other; to leave it out, add `skip: true` to its entry. }"
        "If one is a later export of the other, list both files in one entry of datasets.yml, the oldest first: "
        "`path: [OLD, NEW]`.",
    ),
    Kind(
        "out of order",
        _out_of_order,
        "Timestamps contradict the file order for {n:answer}: {datasets}.",
        "Timestamps decide if all answers have one. In datasets.yml, list the oldest export first.",
    ),
    Kind(
        "outvoted spans",
        _outvoted_spans,
        "{n:span} outvoted: too few annotators annotated them, and no review has decided.",
        "Adjudicate them in Prodigy (export --disagreements), or change `annotators` in project.yml.",
    ),
    Kind(
        "stale decisions",
        lambda merged: some(merged.ledger.rows[Reason.STALE_DECISION]),
        "{n:decision no longer applies|decisions no longer apply}: the annotations they were based on have changed.",
        "`python -m scripts.why corpus --problems` lists them; load them into the page of a new report, and decide "
        "again.",
    ),
    dataset_check(
        "no spans",
        _without_spans,
        "none of its {n:text} has a span: all teach that they have no entity of {labels:label|labels}",
        "If they aren't annotated yet, {add}",
        "skip: true",
    ),
    dataset_check(
        "no rows",
        lambda data: some(not data.merged.ledger.datasets[data.dataset.name]["rows"]),
        "no rows.",
        "Check its path.",
    ),
    Kind(
        "few texts",
        lambda merged: some(_too_few(merged) and sum(merged.ledger.texts[split] for split in SPLITS)),
        "The datasets have {n:distinct text}: too few for train, dev and test.",
        "Add other texts.",
    ),
    Kind(
        EMPTY_TRAIN,
        lambda merged: _empty_splits(merged, "train"),
        NO_TEXT,
        FILL_TRAIN + OR_SALT,
        SALT,
    ),
    Kind(
        EMPTY_SPLIT,
        lambda merged: _empty_splits(merged, "dev", "test"),
        NO_TEXT,
        FILL_SPLIT + OR_SALT,
        SALT,
    ),
    Kind(
        SMALL_TEST,
        lambda merged: some(0 if _too_few(merged) else (n := merged.ledger.texts["test"]) < MIN_TEST_TEXTS and n),
        "Only {n:test text}: scores are unreliable.",
        MORE_TEST,
    ),
    Kind(
        "no gold in dev",
        lambda merged: _labels_without_gold(merged, "dev"),
        "No gold of {labels:label|labels} in dev: training chooses the best pipeline without {labels:~it|them}.",
        MORE_TEST.replace("test", "dev"),
    ),
    Kind(
        NO_GOLD_IN_TEST,
        lambda merged: _labels_without_gold(merged, "test"),
        "No gold of {labels:label|labels} in test: scores say nothing about {labels:~it|them}.",
        MORE_TEST,
    ),
    Kind(
        "unrelated datasets",
        _unrelated_datasets,
        "Datasets {names!r} share neither texts nor labels: a pipeline trained on them finds entities everywhere.",
        "If a label can't occur in a dataset's texts, add it to `absent` there.",
    ),
    dataset_check(
        "overlapped label",
        _overlapped_labels,
        '{n:,} of {all:span} of {label} aren\'t in doc.ents, but only in doc.spans["gold"]: longer spans of {others!r} '
        "overlap them.",
        "To have them in doc.ents instead, declare {dataset!r} before {others!r}, and set in the section merge of "
        "project.yml",
        "overlap: first",
    ),
    Kind(
        "without split key",
        _without_split_key,
        "{n:text} without {key!r} in the meta.",
        "They were split by text.",
    ),
    Kind(
        "similar labels",
        _similar_labels,
        "{old!r} and {new!r} may be one label: their names are nearly equal, or one is short for the other.",
        f"If {{old!r}} is one, {RENAME}",
    ),
    Kind(
        "same spans",
        lambda merged: _same_spans(merged.ledger),
        "{n:,} of {all:span} of {old!r} are spans of {new!r}, too.",
        f"If it is another name of that label, {RENAME}",
    ),
    dataset_check(
        "renamed elsewhere",
        _renamed_elsewhere,
        "renames {old!r} to {new!r}, but another dataset still declares {old!r}.",
        f"If that is the same label, {RENAME}",
    ),
    Kind(
        "tokenizer without rules",
        _tokenizer_without_rules,
        "configs/tokenizer.yml doesn't extend the tokenizer: {tokenizer} has no rules.",
        "Leave infixes and no_exceptions empty.",
    ),
    dataset_check(
        "files of other labels",
        _files_of_other_labels,
        "{files:file} and no span of {labels!r}. If two files have an answer to a text, only the last one counts.",
        "If each file was annotated for other labels, give each a separate entry in datasets.yml.",
    ),
)
