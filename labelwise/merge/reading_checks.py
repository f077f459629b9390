"""Import checks of reading: was each dataset read as intended? They may stop the merge; see `check_kinds`."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import Any, get_args

from labelwise.annotations import ROW_PROBLEMS, Reason
from labelwise.base.settings import encode_yaml
from labelwise.datasets.convert_brat import Conversion, read_conversion
from labelwise.datasets.entries import AnyOffsets, write_entries
from labelwise.merge.check_kinds import (
    EXPECTED,
    IF_CORRECT,
    MAX_LISTED,
    MIN_SPANS,
    Data,
    Evidence,
    Kind,
    Merged,
    dataset_check,
    largest_first,
    some,
)
from labelwise.merge.figures import ALONE, LATER, OTHER_FILE, SUPERSEDED, UNUSED, USED
from labelwise.merge.file_checks import FILE_CHECKS
from labelwise.merge.label_checks import LABEL_CHECKS
from labelwise.merge.readings import BEFORE, INSIDE_WORDS, best_readings
from labelwise.merge.tag_checks import TAG_CHECKS
from labelwise.merge.text_checks import TEXT_CHECKS, find_script
from labelwise.sources.brat import DEFAULTS
from labelwise.sources.formats import TABLES
from labelwise.sources.offsets import OTHER_TEXTS

MIN_OFF_TOKENS = 1 / 6  # share of a dataset's spans
MIN_EMPTY, MIN_EMPTY_SHARE = 5, 1 / 4  # of the annotated documents of a brat corpus
MIN_REJECTED = 0.2  # share of a dataset's answers
MIN_COPIES = 0.9  # share of a dataset's answers
MIN_REPLACED = 0.01  # share of a dataset's spans
MAX_ENTRIES = 20  # to paste
MIN_ONCE = 1 / 3  # share of the spans that have a label of their own
MIN_OTHER_NAME = 0.2  # share of the spans of two labels that may be the same
MAX_CHANCE = 0.001  # probability that two independent labels share no text
TAG_PREFIXES = frozenset("BIOSELU")  # the prefixes of tags
DECLARABLE = ", ".join(filter(None, get_args(AnyOffsets)))
# The option of the section brat that may keep spans with an outcome, unless it is set already.
KEPT_BY = {Reason.MENTION_DIFFERS: "shifted", Reason.DISCONTINUOUS: "discontinuous", Reason.NOT_DECODABLE: "encoding"}


# Queries that are too long for the table.


def _unusable_rows(data: Data) -> list[Evidence]:
    rows, spans = data.figures.rows, data.figures.labels(*USED, *UNUSED)
    bad = Counter({reason: rows[reason] for reason in ROW_PROBLEMS if rows[reason]})
    most = bad.total() >= MIN_SPANS and 2 * bad.total() > rows.total()
    if not most and (spans or not bad[Reason.UNSUPPORTED_FORMAT]):
        return []
    return some(bad.total(), data.figures.sample(*bad), all=rows.total(), reasons=largest_first(bad))


def _losses(data: Data) -> tuple[Counter[str], Counter[str], list[Reason]]:
    """Count usable and unusable spans by label, undeclared labels only if there are no others; list reasons."""
    used, unused = data.figures.labels(*USED), data.figures.labels(*UNUSED)
    undeclared = data.figures.labels(Reason.UNDECLARED)
    lost = unused if undeclared == unused and not used else unused - undeclared
    return used, lost, [reason for reason in UNUSED if lost & data.figures.labels(reason)]


def _other_offsets(data: Data, problem: str) -> list[Evidence]:
    """Find datasets whose lost spans fit by another reading.

    problem (str): "declare" it; different ones in some "files"; one that "brat" doesn't write; or one of OTHER_TEXTS.
    """
    dataset, files = data.dataset, data.files
    better = best_readings(data.merged.trials, files)
    best = next(
        (reading for reading in better.values() if reading.name in OTHER_TEXTS), next(iter(better.values()), None)
    )
    several = len({reading.name for reading in better.values()}) > 1 or len(better) < len(files)
    if not best:
        return []
    made = read_conversion(Path(dataset.declared).parent)
    declared = "brat" if made else "files" if several else "declare"
    if problem != (best.name if best.name in OTHER_TEXTS else declared):
        return []
    names, groups = [], dict[str, list[str]]()
    for file, source in zip(files, dataset.files, strict=True):
        name = better[file].name if file in better else ""
        names += [f"{source.name} ({name})"] if name else []
        groups.setdefault(name, []).append(os.path.relpath(source.path, Path(dataset.declared).parent))
    entries = [
        dataset.to_entry(name="-".join(filter(None, (dataset.name, name))), path=paths, offsets=name)
        for name, paths in sorted(groups.items())
    ]
    n = sum(reading.before for reading in better.values()) if problem == "files" else best.before
    values: dict[str, Any] = {"reading": best.name, "left": best.after}
    values |= {"files": names, "entries": write_entries(entries)} if problem == "files" else {}
    return some(n, data.figures.sample(*_losses(data)[2]), **values)


def _inside_words(data: Data) -> list[Evidence]:
    n = sum(data.merged.trials[file, INSIDE_WORDS, BEFORE] for file in data.files)
    used, lost, reasons = _losses(data)
    total = (used + lost).total()
    if n < max(MIN_SPANS, MIN_OFF_TOKENS * total) or best_readings(data.merged.trials, data.files):
        return []
    return some(n, data.figures.sample(*reasons), all=total)


def _other_script(data: Data) -> list[Evidence]:
    off, lang = _off_tokens(data), data.merged.settings.lang
    other = find_script(text.text for text in data.sample) if off else ""
    words = {"lang": lang, "other": other}
    return [evidence._replace(values={**evidence.values, **words}) for evidence in off if other not in ("", lang)]


def _other_name(data: Data, stops: bool) -> list[Evidence]:
    """Find undeclared labels with many (`stops`) or few spans that may be another name of a declared label.

    The declared label has no span, or no text has spans of both, beyond chance; of several, the most similar name.
    """
    undeclared, used = data.figures.labels(Reason.UNDECLARED), data.figures.labels(*USED)
    olds = [old for old, n in undeclared.items() if n >= MIN_SPANS]
    if not olds or (data.dataset.expect_losses and not stops):
        return []
    without = {*data.dataset.labels} - data.figures.labels(*Reason).keys()
    texts: Counter[str] = Counter()
    shared: Counter[tuple[str, str]] = Counter()
    for keys in data.label_texts(*USED, Reason.UNDECLARED):
        texts.update({label: len(keys_of_label) for label, keys_of_label in keys.items()})
        shared.update({(old, new): len(keys[old] & keys[new]) for old in olds for new in data.dataset.labels})
    evidence = []
    for old in olds:
        apart = [
            new
            for new in data.dataset.labels
            if used[new]
            and not shared[old, new]
            and (texts[old] / (texts[old] + texts[new])) ** texts[old] <= MAX_CHANCE
        ]
        apart = [*without] if len(without) == len(olds) == 1 else apart
        new = max(apart, key=lambda label: SequenceMatcher(None, old, label).ratio(), default="")
        n = undeclared[old]
        if new and stops == (n >= MIN_OTHER_NAME * (n + used[new])):
            line = encode_yaml({"rename": data.dataset.rename | {old: new}}).strip()
            evidence += some(n, data.figures.sample(Reason.UNDECLARED), old=old, new=new, line=line)
    return evidence


def _most_spans_lost(data: Data, helped: Reason | None = None) -> list[Evidence]:
    used, lost, reasons = _losses(data)
    offsets = best_readings(data.merged.trials, data.files) or _inside_words(data) or _other_script(data)
    if lost.total() < MIN_SPANS or lost.total() <= used.total() or offsets or _other_name(data, stops=True):
        return []
    why = largest_first(Counter({reason: (lost & data.figures.labels(reason)).total() for reason in reasons}))
    conversion, first = read_conversion(Path(data.dataset.declared).parent), next(iter(why))
    option = KEPT_BY.get(Reason(first)) if conversion else None
    helps = (
        conversion is not None and option is not None and getattr(conversion.how, option) == getattr(DEFAULTS, option)
    )
    if helped != (first if helps else None):
        return []
    sample = data.figures.sample(*sorted(reasons, key=[*why].index))
    undeclared = [*largest_first(lost)] if first == Reason.UNDECLARED else []
    misplaced = first in (Reason.MISALIGNED, Reason.INVALID) and not data.dataset.offsets
    values: dict[str, Any] = {"offsets": data.dataset.offsets, "undeclared": undeclared, "misplaced": misplaced}
    return some(lost.total(), sample, all=(lost + used).total(), reasons=why, **values)


def _odd_labels(data: Data, problem: str) -> list[Evidence]:
    used, lost, reasons = _losses(data)
    spans = Counter({label: n for label, n in (used + lost).items() if label})
    tagged = any(file.path.name.endswith(TABLES) for file in data.dataset.files)
    bare = sorted(label for label in spans if label in TAG_PREFIXES or re.search(r"[=|'\"\[\]]", label))
    once = [label for label, n in spans.items() if n == 1]
    # A wrong column has frequent words, too.
    often = len(spans) >= MIN_SPANS if tagged else len(once) >= max(MIN_SPANS, MIN_ONCE * spans.total())
    problems = {
        "tags without labels": bare if tagged and 2 * sum(spans[label] for label in bare) >= spans.total() else [],
        "words as labels": sorted(label for label in spans if tagged and not re.search(r"\w", label)),
        "labels used once": once if often and 2 * len(once) > len(spans) else [],
    }
    if problem != next((name for name, labels in problems.items() if labels), ""):
        return []
    return some(
        len(problems[problem]), data.figures.sample(*reasons), all=len(spans), labels=problems[problem][:MAX_LISTED]
    )


def _replaced_labels(data: Data) -> Counter[str]:
    """Count superseded spans of labels without other spans, superseded by rows of other labels."""
    if data.figures.passes["disjoint"] < MIN_COPIES * data.figures.passes["rows"]:
        return Counter()
    others = data.figures.labels(*(reason for reason in Reason if reason not in SUPERSEDED))
    gone = {*data.dataset.labels} - others.keys()
    return Counter({label: n for label, n in data.figures.replaced.items() if n >= MIN_SPANS and label in gone})


def _label_after_label(data: Data) -> list[Evidence]:
    gone = Counter() if data.dataset.name in data.merged.misread or _replaced_by_files(data) else _replaced_labels(data)
    others = [label for label in data.dataset.labels if label not in gone]
    return some(gone.total(), data.figures.sample(ALONE), labels=largest_first(gone), others=others)


def _replaced_spans(data: Data, stops: bool) -> list[Evidence]:
    passes, total = data.figures.passes, data.figures.labels(*USED).total() + data.figures.replaced.total()
    known = data.dataset.duplicates or data.dataset.name in data.merged.misread or _replaced_labels(data)
    reason = LATER if not stops and 2 * passes[LATER] > total else ALONE  # corrections replace few spans
    if passes[reason] < MIN_SPANS or known or stops != (reason == ALONE and 2 * passes[ALONE] > total):
        return []
    return some(passes[reason], data.figures.sample(reason), all=total)


def _replaced_by_files(data: Data) -> list[Evidence]:
    """Count spans replaced by another file's if only names of files, matched by a pattern, say which is later."""
    dataset, n = data.dataset, data.figures.passes[OTHER_FILE]
    total = data.figures.labels(*USED).total() + data.figures.replaced.total()
    listed = len(dataset.paths) == len(dataset.files)
    declared = listed or dataset.duplicates or "" in dataset.annotators
    if n < max(MIN_SPANS, MIN_REPLACED * total) or declared:
        return []
    paths = [os.path.relpath(source.path, Path(dataset.declared).parent) for source in dataset.files]
    stems = [Path(path).stem for path in paths]
    names = stems if len({*stems}) == len(stems) else paths
    names = [name if name.startswith(dataset.name) else f"{dataset.name}-{name}" for name in names]
    entries = [dataset.to_entry(name=name, path=path) for name, path in zip(names, paths, strict=True)]
    written = write_entries(entries) if len(entries) <= MAX_ENTRIES else ""
    return some(n, data.figures.sample(OTHER_FILE), all=total, entries=written)


def _rejected_single_spans(data: Data) -> list[Evidence]:
    rows, spans = data.figures.rows, data.figures.labels(*{reason for _, reason in data.figures.spans})
    n = data.figures.labels(Reason.IN_REJECTED).total()
    single = n == rows[Reason.REJECTED] and spans.total() == rows.total()
    many = n >= max(MIN_SPANS, MIN_REJECTED * rows.total())
    return some(single and many and data.dataset.kind == "auto" and n, all=rows.total())


def _off_tokens(data: Data) -> list[Evidence]:
    lost = data.figures.labels(Reason.MISALIGNED).total()
    total = lost + data.figures.labels(*USED).total()
    many = lost >= max(MIN_SPANS, MIN_OFF_TOKENS * total)
    return some(many and lost, data.figures.sample(Reason.MISALIGNED), all=total)


def _copied_answers(data: Data) -> Iterator[Evidence]:
    name, answers = data.dataset.name, data.figures.rows.total()
    for other, figures in data.merged.figures.items():
        n, more = data.figures.copies[other] + figures.copies[name], figures.rows.total()
        if n >= MIN_COPIES * answers and (answers, name) < (more, other):
            yield from some(n, all=answers, other=other)


def _conversions(merged: Merged) -> Iterator[Conversion]:
    folders = dict.fromkeys(Path(dataset.declared).parent for dataset in merged.datasets)
    yield from filter(None, map(read_conversion, folders))


def _folders_of_other_labels(merged: Merged) -> Iterator[Evidence]:
    for conversion in _conversions(merged):
        named = [f"{name or 'the top'} ({', '.join(labels)})" for name, labels in conversion.disjoint.items()]
        yield from some(len(named), folders=named)


UNUSABLE_OF_ALL = "{n:,} of {all:span} can't be used: {reasons}"
TRIED = f"No other reading of the offsets fits better (tried: {DECLARABLE}, unescaped HTML, stripped texts)."
UNUSABLE = "{n:span has|spans have} unusable offsets"
RIGHT_COLUMN = f"Correct the column or the key of the labels. {IF_CORRECT}"
stop = partial(dataset_check, stops=True)
REPLACED = "{n:,} of {all:span} are only in rows that a later row of the same text replaced"
IF_BOTH_COUNT, UNION = "If both rows count, {add}", "duplicates: union  # or `latest`, if only the later row counts"
OTHER_NAME = "{n:span has|spans have} the undeclared label {old!r}, and no text with one has a span of {new!r}"
IF_OTHER_NAME = "If {old!r} is another name of {new!r}, {add} the first line; if you don't want this label, the second"
OR_EXPECT = "(or `expect_losses: true`, if that is correct)"
# Unusable spans that an option of brat may keep: their outcome, the beginning of the remedy, and the option.
HELPED = {
    "shifted spans": (
        Reason.MENTION_DIFFERS,
        "To move each to the nearest occurrence of the words that it quotes",
        "shifted: nearest",
    ),
    "discontinuous spans": (
        Reason.DISCONTINUOUS,
        "To cover all pieces of each",
        "discontinuous: cover  # or `first`: the first piece",
    ),
    "undecodable spans": (
        Reason.NOT_DECODABLE,
        "If the files were saved in another encoding",
        "encoding: cp1252  # or their encoding",
    ),
}
NOT_DECLARED = {
    "other offsets of brat": (
        "brat",
        "with `{reading}` offsets",
        "Correct the offsets in the .ann files: brat counts characters from 0, and a span's end is behind it.",
    ),
    "offsets of unescaped text": (
        "html",
        "if counted as in unescaped HTML, where `&amp;` is one character",
        "Write the texts that were annotated: in Python, html.unescape(text).",
    ),
    "offsets of stripped text": (
        "stripped",
        "if counted without the white space at the start of the text",
        "Write the texts that were annotated: in Python, text.lstrip().",
    ),
}
ODD = {
    "tags without labels": ["its tags have no labels, only {labels!r}"],
    "words as labels": ["its labels look like words: {labels!r}"],
    "labels used once": ["{n:,} of {all:label} occur only once: {labels!r}. Are they words, numbers or identifiers?"],
}

# Was each dataset read as intended?
READING: tuple[Kind, ...] = (
    stop(
        "unusable rows",
        _unusable_rows,
        "{n:,} of {all:row} can't be used: {reasons}",
        f"Correct them: `python -m scripts.why corpus --problems` explains each. {IF_CORRECT}",
        EXPECTED,
    ),
    *(
        dataset_check(
            name, partial(_other_name, stops=stops), OTHER_NAME, IF_OTHER_NAME, "{line}", EXPECTED, stops=stops
        )
        for name, stops in (("other name", True), ("other name of some spans", False))
    ),
    stop(
        "other offsets",
        lambda data: _other_offsets(data, "declare"),
        f"{UNUSABLE}; {{left:,}} with `{{reading}}` offsets",
        "{add}",
        "offsets: {reading}",
    ),
    stop(
        "other offsets in some files",
        lambda data: _other_offsets(data, "files"),
        f"{UNUSABLE}: {{files}}",
        "Replace {where} by these",
        "{entries}",
    ),
    *(
        stop(name, partial(_other_offsets, problem=problem), f"{UNUSABLE}; {{left:,}} {counted}", remedy)
        for name, (problem, counted, remedy) in NOT_DECLARED.items()
    ),
    stop(
        "spans inside words",
        _inside_words,
        "{n:,} of {all:span} start and end inside words",
        f"Count the offsets in the text of the file. {TRIED} {IF_CORRECT}",
        EXPECTED,
    ),
    stop(
        "other script",
        _other_script,
        "{n:,} of {all:span} start or end inside a token of `lang: {lang}`; the script is that of `{other}`",
        "If that is the language, set in the section merge of project.yml (docs/settings.md says what it needs)",
        "lang: {other}",
    ),
    stop(
        "unusable spans",
        _most_spans_lost,
        UNUSABLE_OF_ALL,
        "{offsets:?Correct `offsets: %s`, which its entry says. }{undeclared:?List %s in `labels`, if annotators were "
        f"shown them. }}{{misplaced:?{TRIED} }}{IF_CORRECT}",
        EXPECTED,
    ),
    *(
        stop(name, partial(_most_spans_lost, helped=reason), UNUSABLE_OF_ALL, f"{remedy} {OR_EXPECT}, {{add}}", line)
        for name, (reason, remedy, line) in HELPED.items()
    ),
    *(stop(name, partial(_odd_labels, problem=name), *words, RIGHT_COLUMN, EXPECTED) for name, words in ODD.items()),
    *LABEL_CHECKS,
    stop(
        "label after label",
        _label_after_label,
        "all spans of {labels} were replaced by later answers with other labels. Were these texts annotated once per "
        "label?",
        "If so, to keep all answers (or set `labels: [{others}]`, to ignore the rest), {add}",
        "duplicates: union",
    ),
    *(
        dataset_check(name, partial(_replaced_spans, stops=stops), REPLACED, IF_BOTH_COUNT, UNION, stops=stops)
        for name, stops in (("mostly replaced spans", True), ("replaced spans", False))
    ),
    stop(
        "spans replaced by other files",
        _replaced_by_files,
        "{n:,} of {all:span} are only in rows that a row of another file replaced, because its name sorts later. Are "
        "the files annotators', or exports of one dataset?",
        "If they are exports, {add} the first line; if each is an annotator's, replace it by an entry for each",
        "duplicates: latest",
        "{entries}",
    ),
    Kind(
        "files missing in a split",
        lambda merged: [
            Evidence(max(files.values()), {"split": split, "files": [*files]})
            for conversion in _conversions(merged)
            for split, files in conversion.lacking.items()
        ],
        "No text of {split} has {files:a file|files}, but texts of other splits do: gold may be missing.",
        "Fetch these files; or list the `labels` of the other files alone, such as BioNLP's .a1, in the section brat "
        "of project.yml; or put the texts elsewhere.",
    ),
    Kind(
        "empty annotation files",
        lambda merged: [
            Evidence(conversion.empty, {"all": conversion.documents})
            for conversion in _conversions(merged)
            if MIN_EMPTY <= conversion.empty >= MIN_EMPTY_SHARE * conversion.documents and not conversion.how.empty_ann
        ],
        "{n:,} of {all:annotated brat document} have an empty .ann file, and count as texts without entities.",
        "If they aren't annotated yet (brat needs an empty file for each document), add to the section brat of "
        "project.yml",
        "empty_ann: skip  # or `empty`, if they have no entities",
    ),
    Kind(
        "folders of other labels",
        _folders_of_other_labels,
        "Folders have no label in common, and each text counts as annotated for all labels: {folders}.",
        "If each folder was annotated for its own labels, add to the section brat of project.yml",
        "folders: labels",
        people=True,
    ),
    dataset_check(
        "off tokens",
        lambda data: [] if data.dataset.name in data.merged.misread else _off_tokens(data),
        "{n:,} of {all:span} start or end inside a token",
        "To take whole tokens, set in the section merge of project.yml (docs/settings.md has other tokenizers)",
        "alignment: expand",
    ),
    dataset_check(
        "rejected single spans",
        _rejected_single_spans,
        "all {all:answer} have one span each, and {n:,} of them are rejected, with their texts. Did they accept or "
        "reject the spans alone (ner.teach)?",
        "If so, {add}",
        "kind: binary  # or `complete`, if all spans of accepted texts are annotated",
    ),
    dataset_check(
        "copied answers",
        _copied_answers,
        "{n:,} of its {all:answer} are copies of answers in {other!r} (same timestamps) and aren't counted twice",
        "If {other!r} is a newer export of it, leave it out: {add}",
        "skip: true",
    ),
    dataset_check(
        "anonymous answers",
        lambda data: [
            Evidence(texts, {"name": name})
            for name, texts in sorted(data.figures.unnamed.items())
            if texts >= MIN_SPANS
        ],
        "{n:text was|texts were} answered by {name!r} and anonymously; these count as two annotators",
        "If {name!r} gave both, {add}",
        "annotator: {name!y}",
        people=True,
    ),
    *TAG_CHECKS,
    *TEXT_CHECKS,
    *FILE_CHECKS,
)
