"""The import checks of a merge: were all datasets read as intended, and is the corpus good for training?

Each check is one function here, or in `text_checks`, and a place in CHECKS; see `check_kinds`. After one that stops,
nothing but `why` reads the corpus, until the dataset's entry declares its form, or `expect_losses: true`.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path

import msgspec

from labelwise.annotations import ROW_PROBLEMS, Reason
from labelwise.base.console import msg
from labelwise.corpus.agreement import find_settled
from labelwise.corpus.import_checks import ImportCheck
from labelwise.corpus.ledger import pairwise_f
from labelwise.corpus.manifest import Split
from labelwise.corpus.queries import where
from labelwise.corpus.tables import read_groups
from labelwise.corpus.tasks import DATASETS
from labelwise.corpus.tokenizer import has_rules
from labelwise.datasets.convert_brat import Conversion, read_conversion
from labelwise.datasets.entries import write_entries
from labelwise.datasets.undeclared import Undeclared, patterns_in
from labelwise.merge.check_kinds import (
    MAX_LISTED,
    Data,
    Found,
    Kind,
    Merged,
    Words,
    check,
    dataset_check,
    largest_first,
    write_words,
)
from labelwise.merge.commit import first_problem
from labelwise.merge.figures import ALONE, SUPERSEDED, UNUSED
from labelwise.merge.readings import best_reading
from labelwise.merge.rules.settings import load_tokenizer
from labelwise.merge.text_checks import TEXT_CHECKS
from labelwise.sources.brat import DEFAULTS
from labelwise.sources.formats import SUFFIXES, TABLES

MIN_SPANS = 10  # or rows, below which chance is an explanation
MIN_OFF_TOKENS = 1 / 6  # share of a dataset's spans
MIN_COPIES = 0.9  # share of a dataset's answers
MIN_SAME_SPANS = 0.8  # share of a label's spans that are another label's, too
MIN_OTHER_SPLIT = 0.1  # share of a dataset's rows
MIN_SAME_PERSON_F = 0.97  # F1 between two annotators
MIN_TEST_TEXTS = 20
USED = (
    Reason.ENTITY,
    Reason.SAME_SPAN,
    Reason.NESTED,
    Reason.CROSSING,
    Reason.OUTVOTED,
    Reason.ACCEPT_REJECT,
    Reason.REMOVED,
)
BARE = frozenset("BIOSELU")  # the prefixes of tags
IF_CORRECT = "If the data is correct, {add}"
EXPECTED = "expect_losses: true"
ANNOTATE = "Annotate some texts fully (ner.manual, ner.correct)."


# Was each dataset read as intended?


@dataset_check("{n:,} of {rows:row} can't be used: {reasons}", IF_CORRECT, EXPECTED, stops=True)
def unusable_rows(data: Data) -> Iterator[Found]:
    """Find datasets of which most rows can't be used, or that have no span and a row of another format."""
    rows, spans = data.figures.rows, data.figures.labels(*USED, *UNUSED)
    bad = Counter({reason: rows[reason] for reason in ROW_PROBLEMS if rows[reason]})
    nothing = bad[Reason.OTHER_FORMAT] and not spans
    if nothing or (bad.total() >= MIN_SPANS and 2 * bad.total() > rows.total()):
        values = {"rows": rows.total(), "reasons": largest_first(bad)}
        yield Found(bad.total(), values, data.figures.sample(*bad))


@dataset_check(
    "{n:span has|spans have} unusable offsets; with `{reading}` offsets, only {left:,} would",
    "{add}",
    "offsets: {reading}",
    stops=True,
)
def other_offsets(data: Data) -> Iterator[Found]:
    """Find datasets whose lost spans fit if their offsets are read otherwise."""
    if best := best_reading(data.merged.trials, data.dataset.name):
        reading, before, after = best
        yield Found(before, {"reading": reading, "left": after}, data.figures.sample(*_losses(data)[2]))


LOST = "{n:,} of {spans:span} can't be used: {reasons}"


@dataset_check(LOST, "{offsets:?Correct `offsets: %s`, which its entry says. }" + IF_CORRECT, EXPECTED, stops=True)
def unusable_spans(data: Data) -> Iterator[Found]:
    """Find datasets of which most spans can't be used. Undeclared labels count only if there are no others."""
    yield from _most_lost(data)


OR_EXPECT = "(or `expect_losses: true`, if that is correct)"


@dataset_check(
    LOST,
    f"To move each to the nearest occurrence of the words that it quotes {OR_EXPECT}, {{add}}",
    "shifted: nearest",
    stops=True,
)
def shifted_spans(data: Data) -> Iterator[Found]:
    """Find brat corpora most of whose annotations aren't at their offsets."""
    yield from _most_lost(data, Reason.MENTION_DIFFERS)


@dataset_check(
    LOST,
    f"To cover all pieces of each {OR_EXPECT}, {{add}}",
    "discontinuous: cover  # or `first`: the first piece",
    stops=True,
)
def discontinuous_spans(data: Data) -> Iterator[Found]:
    """Find brat corpora most of whose annotations are in several pieces."""
    yield from _most_lost(data, Reason.DISCONTINUOUS)


@dataset_check(
    LOST,
    f"If the files were saved in another encoding {OR_EXPECT}, {{add}}",
    "encoding: cp1252  # or the encoding in which they were saved",
    stops=True,
)
def undecodable_spans(data: Data) -> Iterator[Found]:
    """Find brat corpora most of whose annotations can't be decoded."""
    yield from _most_lost(data, Reason.NOT_DECODABLE)


# The option of the section brat that may keep spans with an outcome, unless it is set already.
KEPT_BY = {Reason.MENTION_DIFFERS: "shifted", Reason.DISCONTINUOUS: "discontinuous", Reason.NOT_DECODABLE: "encoding"}


def _most_lost(data: Data, helped: Reason | None = None) -> Iterator[Found]:
    """Find datasets of which most spans can't be used.

    helped (Reason | None): the most frequent reason, if an option of brat may help; None if none helps.
    """
    used, lost, reasons = _losses(data)
    if lost.total() < MIN_SPANS or lost.total() <= used.total() or best_reading(data.merged.trials, data.dataset.name):
        return
    why = largest_first(Counter({reason: (lost & data.figures.labels(reason)).total() for reason in reasons}))
    made, first = read_conversion(Path(data.dataset.declared).parent), next(iter(why))
    option = KEPT_BY.get(Reason(first)) if made else None
    helps = option is not None and getattr(made.how, option) == getattr(DEFAULTS, option)
    if helped == (first if helps else None):
        values = {"spans": (lost + used).total(), "reasons": why, "offsets": data.dataset.offsets}
        yield Found(lost.total(), values, data.figures.sample(*sorted(reasons, key=[*why].index)))


def _losses(data: Data) -> tuple[Counter[str], Counter[str], list[Reason]]:
    """Count the used and the unusable spans, by label; and list the reasons of the latter."""
    used, unused = data.figures.labels(*USED), data.figures.labels(*UNUSED)
    undeclared = data.figures.labels(Reason.UNDECLARED)
    lost = unused if undeclared == unused and not used else unused - undeclared
    return used, lost, [reason for reason in UNUSED if lost & data.figures.labels(reason)]


RIGHT_COLUMN = f"Correct the column of the tags, or `labels`. {IF_CORRECT}"


@dataset_check("its tags have no labels, only {labels!r}", RIGHT_COLUMN, EXPECTED, stops=True)
def tags_without_labels(data: Data) -> Iterator[Found]:
    """Find tables whose tags are bare, or have attributes in the place of labels."""
    yield from _odd_labels(data, "tags")


@dataset_check("its labels look like words: {labels!r}", RIGHT_COLUMN, EXPECTED, stops=True)
def words_as_labels(data: Data) -> Iterator[Found]:
    """Find tables with a label that has no letter."""
    yield from _odd_labels(data, "signs")


@dataset_check(
    "{n:,} of {all:label} occur only once: {labels!r}. Is this the right column?", RIGHT_COLUMN, EXPECTED, stops=True
)
def labels_used_once(data: Data) -> Iterator[Found]:
    """Find tables most of whose labels have one span."""
    yield from _odd_labels(data, "once")


def _odd_labels(data: Data, problem: str) -> Iterator[Found]:
    """Find tables whose labels have a problem, and none of those before it."""
    if not any(file.path.name.endswith(TABLES) for file in data.dataset.files):
        return
    used, lost, reasons = _losses(data)
    spans = used + lost
    bare = {label: n for label, n in spans.items() if label in BARE or re.search(r"[=|]", label)}
    found = {
        "tags": sorted(bare) if 2 * sum(bare.values()) >= spans.total() else [],
        "signs": sorted(label for label in spans if label and not re.search(r"\w", label)),
        "once": [label for label, n in spans.items() if n == 1] if len(spans) >= MIN_SPANS else [],
    }
    if 2 * len(found["once"]) <= len(spans):
        found["once"] = []
    first = next((name for name, labels in found.items() if labels), "")
    if first == problem:
        labels = found[problem]
        values = {"labels": labels[:MAX_LISTED], "all": len(spans)}
        yield Found(len(labels), values, data.figures.sample(*reasons))


@dataset_check(
    "all spans of {labels} were replaced by later answers with other labels. Were these texts annotated once per "
    "label?",
    "If so, to keep all answers (or set `labels: [{others}]`, to ignore the rest), {add}",
    "duplicates: union",
    stops=True,
)
def label_after_label(data: Data) -> Iterator[Found]:
    """Find datasets that have lost all spans of a label to rows of other labels."""
    if gone := _replaced_labels(data):
        others = [label for label in data.dataset.labels if label not in gone]
        values = {"labels": largest_first(gone), "others": others}
        yield Found(gone.total(), values, data.figures.sample(ALONE))


def _replaced_labels(data: Data) -> Counter[str]:
    """Count the superseded spans of labels without any span left, if rows of other labels superseded them."""
    if data.figures.passes["disjoint"] < MIN_COPIES * data.figures.passes["rows"]:
        return Counter()
    left = data.figures.labels(*(reason for reason in Reason if reason not in SUPERSEDED))
    gone = {*data.dataset.labels} - left.keys()
    return Counter({label: n for label, n in data.figures.replaced.items() if n >= MIN_SPANS and label in gone})


@check(
    "No text of {split} has {files:a file|files}, but texts of other splits do: gold may be missing.",
    "Fetch these files; or list the `labels` of the other files alone, such as BioNLP's .a1, in the section brat of "
    "project.yml; or put the texts elsewhere.",
)
def files_missing_in_a_split(merged: Merged) -> Iterator[Found]:
    """Find splits of a brat corpus that lack a kind of file, such as .a2."""
    for made in _conversions(merged):
        for split, files in made.lacking.items():
            yield Found(max(files.values()), {"split": split, "files": [*files]})


@check(
    "Folders have no label in common, and each text counts as annotated for all labels: {folders}.",
    "If each folder was annotated for its own labels, add to the section brat of project.yml",
    "folders: labels",
    people=True,
)
def folders_of_other_labels(merged: Merged) -> Iterator[Found]:
    """Find brat corpora whose folders share no label."""
    for made in _conversions(merged):
        if made.disjoint:
            named = [f"{name or 'the top'} ({', '.join(labels)})" for name, labels in made.disjoint.items()]
            yield Found(len(named), {"folders": named})


def _conversions(merged: Merged) -> Iterator[Conversion]:
    """Yield the marks of the folders of tasks that `convert-brat` has written."""
    folders = dict.fromkeys(Path(dataset.declared).parent for dataset in merged.datasets)
    yield from filter(None, map(read_conversion, folders))


@dataset_check(
    "{n:,} of {spans:span} start or end inside a token",
    "To take whole tokens, set in the section merge of project.yml (docs/languages.md has other tokenizers)",
    "alignment: expand",
)
def off_tokens(data: Data) -> Iterator[Found]:
    """Find datasets with many spans off the tokens, unless a check that stops explains them."""
    lost = data.figures.labels(Reason.NO_BOUNDARY).total()
    total = lost + data.figures.labels(*USED).total()
    if lost >= max(MIN_SPANS, MIN_OFF_TOKENS * total) and data.dataset.name not in data.merged.misread:
        yield Found(lost, {"spans": total}, data.figures.sample(Reason.NO_BOUNDARY))


@dataset_check(
    "{n:row was|rows were} replaced by later rows that lack some of their labels ({spans:span} lost)",
    "If both rows count, {add}",
    "duplicates: union",
)
def replaced_rows(data: Data) -> Iterator[Found]:
    """Find datasets with superseded rows that alone have spans of some labels."""
    rows = data.figures.passes[ALONE]
    if rows >= MIN_SPANS and not _replaced_labels(data):
        yield Found(rows, {"spans": data.figures.passes["spans"]}, data.figures.sample(ALONE))


@dataset_check(
    "{n:,} of its {answers:answer} are copies of answers in {other!r} (same timestamps) and aren't counted twice",
    "If {other!r} is a newer export of it, leave it out: {add}",
    "skip: true",
)
def copied_answers(data: Data) -> Iterator[Found]:
    """Find datasets of which another one has nearly all answers."""
    name, answers = data.dataset.name, data.figures.rows.total()
    for other, figures in data.merged.figures.items():
        n, more = data.figures.copies[other] + figures.copies[name], figures.rows.total()
        if n and n >= MIN_COPIES * answers and (answers, name) < (more, other):
            yield Found(n, {"answers": answers, "other": other})


@dataset_check(
    "{n:text was|texts were} answered by {name!r} and anonymously; these count as two annotators",
    "If {name!r} gave both, {add}",
    "annotator: {name!y}",
    people=True,
)
def anonymous_answers(data: Data) -> Iterator[Found]:
    """Find texts with an anonymous and a named answer in one dataset."""
    for name, texts in sorted(data.figures.unnamed.items()):
        if texts >= MIN_SPANS:
            yield Found(texts, {"name": name})


# Is the corpus good for training? The others of these checks presuppose that all datasets were read as intended.


@check(
    "{n:row or span|rows or spans} can't be used.",
    "`python -m scripts.why corpus --problems` lists each with its dataset, file, line and reason.",
    advice=True,
)
def problems(merged: Merged) -> Iterator[Found]:
    """Find rows and spans that can't be used, and the first of them."""
    if merged.ledger.problems:
        yield Found(merged.ledger.problems, quotes=[first_problem(merged.corpus)])


@check(
    "Spans of undeclared labels aren't used: {labels}.",
    "If the texts were annotated for a label, add it to the labels of their dataset in datasets.yml.",
    advice=True,
)
def undeclared_labels(merged: Merged) -> Iterator[Found]:
    """Find labels of spans that the entry of their dataset doesn't have."""
    spans = {f"{name}: {label}": n for name, of in merged.ledger.undeclared.items() for label, n in of.items()}
    if spans:
        yield Found(sum(spans.values()), {"labels": largest_first(spans)})


@check("`rename` lists labels that don't occur: {labels}.", "Correct `rename` in datasets.yml.", advice=True)
def unused_renames(merged: Merged) -> Iterator[Found]:
    """Find labels in `rename` that no span has."""
    renamed = merged.ledger.renamed.items()
    unused = [
        f"{name}: {old} to {new}"
        for name, of in renamed
        for old, to in of.items()
        for new, spans in to.items()
        if not spans
    ]
    if unused:
        yield Found(len(unused), {"labels": sorted(unused)})


@check(
    "No text is fully annotated for {labels:label|labels}; accepted and rejected spans alone teach the model little.",
    f"{ANNOTATE} By default, training excludes {{labels:~this label|these labels}}.",
    advice=True,
)
def not_fully_annotated(merged: Merged) -> Iterator[Found]:
    """Find labels that no text is complete for."""
    if labels := [label for label, counts in merged.ledger.labels.items() if not counts["complete"]]:
        yield Found(len(labels), {"labels": labels})


@check(
    "Near-duplicates between training and test were not checked.",
    "Set near_duplicates: report, or group, in project.yml.",
    advice=True,
)
def not_compared(merged: Merged) -> Iterator[Found]:
    """Find merges that looked for no nearly equal texts."""
    if not merged.ledger.compared:
        yield Found()


@check(
    "{n:pair} of nearly equal texts in two splits; {test:,} of them with a text in test.",
    "Set near_duplicates: group in project.yml to keep them in one; corpus/near_duplicates.jsonl has each.",
    advice=True,
)
def nearly_equal_texts(merged: Merged) -> Iterator[Found]:
    """Find pairs of nearly equal texts in two splits."""
    found = merged.ledger.near_duplicates.values()
    if pairs := sum(of.total() for of in found):
        yield Found(pairs, {"test": sum(of["test"] for of in found)})


@dataset_check(
    "{n:answer} left out; {other!r} declares another split for their texts.",
    "A text is in one split: test before dev before train. Take these texts out of one of the two datasets.",
    advice=True,
)
def texts_of_other_splits(data: Data) -> Iterator[Found]:
    """Find answers that another dataset's split leaves out."""
    ledger, name = data.merged.ledger, data.dataset.name
    for other, rows in ledger.other_split.get(name, {}).items():
        if rows >= MIN_OTHER_SPLIT * ledger.datasets[name]["rows"]:
            yield Found(rows, {"other": other})


@check(
    "{n:answer was|answers were} replaced by a later answer of the same annotator in another dataset: {datasets}.",
    "If two people share a name, give an entry `annotator: {{NAME: ANOTHER}}` in datasets.yml.",
    advice=True,
)
def replaced_answers(merged: Merged) -> Iterator[Found]:
    """Find answers that the same annotator's answer in another dataset replaces."""
    replaced = {f"{one} by {by}": n for one, of in merged.ledger.replaced.items() for by, n in of.items()}
    if replaced:
        yield Found(sum(replaced.values()), {"datasets": largest_first(replaced)})


@check(
    "Unknown {names:~annotator|annotators} in `annotators`: {names!r}.",
    "Correct `annotators` in project.yml.",
    advice=True,
    people=True,
)
def unknown_annotators(merged: Merged) -> Iterator[Found]:
    """Find names in the policy `annotators` that no answer has."""
    if names := merged.ledger.unknown_annotators:
        yield Found(len(names), {"names": names})


@dataset_check(
    "`annotator` names {names!r}, and no answer is theirs.",
    "Correct it in datasets.yml: it says who names in answers are, such as `{{1: ann}}`, or who answered where there "
    "is none. The names here: {known!r}.",
    advice=True,
    people=True,
)
def unmatched_annotators(data: Data) -> Iterator[Found]:
    """Find people whom an entry names, and who have no answer in its dataset."""
    names, known = data.merged.ledger.unmatched_people.get(data.dataset.name, ([], []))
    if names:
        yield Found(len(names), {"names": names, "known": [*filter(None, known)]})


@check(
    "{one!r} and {other!r} are anonymous, so they count as two annotators, but agree in {n:text} (F1 {f:.3f}). "
    "Same person?",
    "If one is a later export of the other, list both files in one entry of datasets.yml, the oldest first: "
    "`path: [OLD, NEW]`.",
    advice=True,
)
def same_annotator(merged: Merged) -> Iterator[Found]:
    """Find pairs of anonymous datasets with nearly the same spans."""
    for (one, other), counts in merged.ledger.pairs.items():
        f = pairwise_f(counts["both"], counts["spans"]) or 0.0
        anonymous = {one, other} <= merged.ledger.datasets.keys()
        if anonymous and counts["both"] >= MIN_SPANS and f >= MIN_SAME_PERSON_F:
            yield Found(counts["texts"], {"one": one, "other": other, "f": f})


@check(
    "Timestamps contradict the file order for {n:answer}: {datasets}.",
    "Timestamps decide if all answers have one. In datasets.yml, list the oldest export first.",
    advice=True,
)
def out_of_order(merged: Merged) -> Iterator[Found]:
    """Find answers whose latest is another one by time and by the order of files."""
    if counts := merged.ledger.out_of_order:
        yield Found(counts.total(), {"datasets": largest_first(counts)})


@check(
    "{n:span} outvoted: too few annotators marked them, and no review has decided.",
    "Adjudicate them in Prodigy (export --disagreements), or change `annotators` in project.yml.",
    advice=True,
)
def outvoted_spans(merged: Merged) -> Iterator[Found]:
    """Find spans that too few annotators marked, in texts and for labels that no review has decided."""
    spans = 0
    for group in read_groups(merged.corpus, merged=False) if merged.ledger.spans[Reason.OUTVOTED] else ():
        outvoted, settled = where(group.spans, "reason", [Reason.OUTVOTED]), find_settled(group)
        pairs = zip(outvoted["text"].to_pylist(), outvoted["label"].to_pylist(), strict=True)
        spans += sum(pair not in settled for pair in pairs)
    if spans:
        yield Found(spans)


@check(
    "{n:decision no longer applies|decisions no longer apply}: the annotations they were based on have changed.",
    "`python -m scripts.why corpus --problems` lists them; load them into the page of a new report, and decide again.",
    advice=True,
)
def stale_decisions(merged: Merged) -> Iterator[Found]:
    """Find decisions about answers that have changed since."""
    if rows := merged.ledger.rows[Reason.SUPERSEDED_DECISION]:
        yield Found(rows)


@dataset_check("no rows.", "Check its path.", advice=True)
def no_rows(data: Data) -> Iterator[Found]:
    """Find datasets without rows."""
    if not data.merged.ledger.datasets[data.dataset.name]["rows"]:
        yield Found()


@check("No text is in train.", "Lower both ratios in project.yml, or declare a dataset with split: train.", advice=True)
def empty_train(merged: Merged) -> Iterator[Found]:
    """Find a corpus without texts to train on."""
    if not merged.ledger.texts["train"]:
        yield Found()


@check(
    "No text is in {split}.",
    "Raise {split}_ratio in project.yml, or declare a dataset with split: {split}.",
    advice=True,
)
def empty_split(merged: Merged) -> Iterator[Found]:
    """Find a corpus without dev or test texts."""
    for split in ("dev", "test"):
        if not merged.ledger.texts[split]:
            yield Found(values={"split": split})


MORE_TEST = "Annotate more texts, raise test_ratio in project.yml, or declare a dataset with split: test."


@check("Only {n:test text}: scores are unreliable.", MORE_TEST, advice=True)
def small_test(merged: Merged) -> Iterator[Found]:
    """Find a test set of few texts."""
    if 0 < (texts := merged.ledger.texts["test"]) < MIN_TEST_TEXTS:
        yield Found(texts)


@check("No gold of {labels:label|labels} in test: scores say nothing about {labels:~it|them}.", MORE_TEST, advice=True)
def no_gold_in_test(merged: Merged) -> Iterator[Found]:
    """Find labels without gold in test."""
    yield from _labels_without_gold(merged, "test")


@check(
    "No gold of {labels:label|labels} in dev: training chooses the best pipeline without {labels:~it|them}.",
    MORE_TEST.replace("test", "dev"),
    advice=True,
)
def no_gold_in_dev(merged: Merged) -> Iterator[Found]:
    """Find labels without gold in dev."""
    yield from _labels_without_gold(merged, "dev")


def _labels_without_gold(merged: Merged, split: Split) -> Iterator[Found]:
    gold: Mapping[str, int] = merged.ledger.gold.get(split, {})
    labels = sorted(label for label in merged.ledger.labels if not gold.get(label))
    if labels and merged.ledger.texts[split]:
        yield Found(len(labels), {"labels": labels})


@check(
    "{n:,} of {texts:training text} are annotated for some labels only.",
    "Each label is trained only on texts annotated for it (smallest: {smallest}). If a label can't occur in some "
    'datasets, add it to `absent`; if unmarked always means "no entity", set coverage: outside.',
    advice=True,
)
def partly_annotated(merged: Merged) -> Iterator[Found]:
    """Find training texts that aren't complete for all labels."""
    ledger, texts = merged.ledger, merged.ledger.texts["train"]
    partly = ledger.partly["train"]
    if partly and merged.settings.coverage == "by-label":
        complete = {label: ledger.complete["train"][label] for label in ledger.labels}
        smallest = sorted((n, label) for label, n in complete.items() if n < texts)
        yield Found(partly, {"texts": texts, "smallest": {label: n for n, label in smallest[:MAX_LISTED]}})


@check("{n:text} without {key!r} in the meta.", "They were split by text.", advice=True)
def without_split_key(merged: Merged) -> Iterator[Found]:
    """Find texts that `split_by` can't keep together."""
    if texts := merged.ledger.without_split_by:
        yield Found(texts, {"key": merged.settings.split_by})


RENAME = "add `rename: {{{old!y}: {new!y}}}` to the entries in datasets.yml that have it."


@check(
    "{old!r} and {new!r} may be one label: their names are nearly equal.", f"If {{old!r}} is one, {RENAME}", advice=True
)
def similar_labels(merged: Merged) -> Iterator[Found]:
    """Find labels that differ in case, composition, plural or the separators of words."""
    labels = merged.ledger.labels
    for one, other in combinations(labels, 2):
        if _simplify(one) == _simplify(other):
            old, new = sorted((one, other), key=lambda label: labels[label]["gold"])
            yield Found(values={"old": old, "new": new})


def _simplify(label: str) -> str:
    """Fold a label's case, Unicode form, plural, and the separators of its words.

    >>> _simplify("Birth Places"), _simplify("BIRTH_PLACE")
    ('birthplace', 'birthplace')
    """
    return re.sub(r"[\s_-]", "", unicodedata.normalize("NFKC", label).casefold()).removesuffix("s")


@check(
    "{n:,} of {spans:span} of {old!r} are spans of {new!r}, too.",
    f"If it is another name of that label, {RENAME}",
    advice=True,
)
def same_spans(merged: Merged) -> Iterator[Found]:
    """Find labels with nearly the same spans."""
    labels = merged.ledger.labels
    for old, of in merged.ledger.lost_spans.get(Reason.SAME_SPAN, {}).items():
        for new, n in of.items():
            if n >= max(MIN_SPANS, MIN_SAME_SPANS * min(labels[old]["gold"], labels[new]["gold"])):
                yield Found(n, {"spans": labels[old]["gold"], "old": old, "new": new})


@dataset_check(
    "renames {old!r} to {new!r}, but another dataset still declares {old!r}.",
    f"If that is the same label, {RENAME}",
    advice=True,
)
def renamed_elsewhere(data: Data) -> Iterator[Found]:
    """Find labels that one entry renames and another one declares."""
    renames = data.merged.ledger.renamed.get(data.dataset.name, {})
    targets = {new for to in renames.values() for new in to}
    for old, to in renames.items():
        if old in data.merged.ledger.labels and old not in targets:
            yield Found(values={"old": old, "new": min(to)})


@check(
    "configs/tokenizer.yml doesn't extend the tokenizer: {tokenizer} has no rules.",
    "Leave infixes and no_exceptions empty.",
    advice=True,
)
def tokenizer_without_rules(merged: Merged) -> Iterator[Found]:
    """Find a tokenizer that can't take rules that are set."""
    rules, nlp = merged.settings.tokenizer, load_tokenizer(merged.settings).nlp
    if (rules.infixes or rules.no_exceptions) and not has_rules(nlp):
        yield Found(values={"tokenizer": type(nlp.tokenizer).__name__})


@dataset_check(
    "{files:file} and no span of {labels!r}. If two files have an answer to a text, only the last one counts.",
    "If each file was annotated for other labels, give each an entry of its own in datasets.yml.",
    advice=True,
)
def files_of_other_labels(data: Data) -> Iterator[Found]:
    """Find datasets of several files that have lost all spans of a label."""
    ledger, dataset = data.merged.ledger, data.dataset
    lost = [label for label in dataset.labels if not ledger.labels[label]["gold"]]
    if len(dataset.files) > 1 and lost and len(dataset.labels) > 1 and ledger.spans[Reason.IN_SUPERSEDED]:
        yield Found(len(lost), {"labels": lost, "files": len(dataset.files)})


# Files that no entry declares are found before the merge, and not stored.

UNDECLARED = "{file}: {dataset!r} isn't declared: {problem}"
LEAVE_OUT = "To leave it out for good, add an entry with `skip: true` to {declarations}."


def nothing(merged: Merged) -> Iterator[Found]:
    """Yield nothing: the check isn't about a merge."""
    yield from ()


NO_DATA = Kind("no data", nothing, UNDECLARED)
UNREADABLE = Kind("unreadable file", nothing, UNDECLARED, LEAVE_OUT)
UNDECLARED_FILE = Kind(
    "undeclared file",
    nothing,
    UNDECLARED,
    f"{LEAVE_OUT} To merge it, add there, with all labels that annotators were shown",
    ("{entry}",),
)


def check_undeclared(folder: Path, left: Iterable[Undeclared]) -> Iterator[ImportCheck]:
    """Yield the files of a folder that can't be declared, each with the entry to add."""
    for one in left:
        file = folder / one.entry.paths[0]
        patterns = patterns_in(file) if file.is_dir() else []
        path, labels = patterns or one.entry.path, one.entry.labels or ("LABEL",)
        entry = write_entries([msgspec.structs.replace(one.entry, path=path, labels=labels)])
        kind = UNDECLARED_FILE if patterns or file.name.endswith(SUFFIXES) else NO_DATA
        if kind is UNDECLARED_FILE and Reason.OTHER_FORMAT in one.problem:
            kind = UNREADABLE
        values = {"file": str(file), "problem": one.problem, "declarations": str(folder / DATASETS), "entry": entry}
        yield ImportCheck(kind=kind.name, dataset=one.entry.name, values=values)


CHECKS = (
    unusable_rows,
    other_offsets,
    unusable_spans,
    shifted_spans,
    discontinuous_spans,
    undecodable_spans,
    tags_without_labels,
    words_as_labels,
    labels_used_once,
    label_after_label,
    files_missing_in_a_split,
    folders_of_other_labels,
    off_tokens,
    replaced_rows,
    copied_answers,
    anonymous_answers,
    *TEXT_CHECKS,
    problems,
    undeclared_labels,
    unused_renames,
    not_fully_annotated,
    not_compared,
    nearly_equal_texts,
    texts_of_other_splits,
    replaced_answers,
    unknown_annotators,
    unmatched_annotators,
    same_annotator,
    out_of_order,
    outvoted_spans,
    stale_decisions,
    no_rows,
    empty_train,
    empty_split,
    small_test,
    no_gold_in_dev,
    no_gold_in_test,
    partly_annotated,
    without_split_key,
    similar_labels,
    same_spans,
    renamed_elsewhere,
    tokenizer_without_rules,
    files_of_other_labels,
    NO_DATA,
    UNREADABLE,
    UNDECLARED_FILE,
)
KINDS = {kind.name: kind for kind in CHECKS}


def find_checks(merged: Merged) -> list[ImportCheck]:
    """List what all checks find, first what stops; there is no advice then."""
    found: list[ImportCheck] = []
    for kind in CHECKS:
        if not (kind.advice and any(one.stops for one in found)):
            found += kind.find(merged)
    return sorted(found, key=lambda one: not one.stops)


def describe(found: ImportCheck) -> Words:
    """Put a finding into words."""
    return write_words(KINDS[found.kind], found)


def print_checks(found: Iterable[ImportCheck]) -> None:
    """Print findings, each with its examples, its remedy and the lines to paste."""
    for one in found:
        sentence, remedy, lines = describe(one)
        (msg.fail if one.stops else msg.warn)(sentence)
        for place in one.sample or one.places:
            print(f"    {place}")
        if remedy:
            msg.more(f"{remedy}:" if lines else remedy)
        for line in lines:
            print(line if line.startswith("- ") else f"    {line}")  # an entry begins a line of datasets.yml
