"""The import checks of a merge: were datasets read as intended, and is the corpus fit for training?

Each check is an entry of a table below, or of `text_checks`; see `check_kinds`. After a check that stops, only `why`
reads the corpus, until the dataset's entry declares its form, or `expect_losses: true`.
"""

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import msgspec
import pyarrow.compute as pc

from labelwise.annotations import ROW_PROBLEMS, Reason
from labelwise.base.console import msg
from labelwise.base.settings import DATASETS, encode_yaml
from labelwise.corpus.agreement import find_settled
from labelwise.corpus.import_checks import (
    EMPTY_SPLIT,
    EMPTY_TRAIN,
    FILL_SPLIT,
    FILL_TRAIN,
    NO_TEXT,
    OTHER_HASH,
    ImportCheck,
)
from labelwise.corpus.ledger import Ledger, pairwise_f
from labelwise.corpus.manifest import SPLITS, Split
from labelwise.corpus.queries import count, where
from labelwise.corpus.tables import read_columns, read_groups
from labelwise.corpus.tokenizer import has_rules
from labelwise.datasets.convert_brat import Conversion, read_conversion
from labelwise.datasets.entries import AnyOffsets, write_entries
from labelwise.datasets.undeclared import Undeclared, patterns_in
from labelwise.merge.check_kinds import (
    MAX_LISTED,
    Data,
    Evidence,
    Kind,
    Merged,
    Words,
    dataset_check,
    each_of,
    largest_first,
    nothing,
    some,
    write_words,
)
from labelwise.merge.commit import first_problem
from labelwise.merge.figures import ALONE, SUPERSEDED, UNUSED
from labelwise.merge.file_checks import FILE_CHECKS
from labelwise.merge.readings import BEFORE, INSIDE_WORDS, best_readings
from labelwise.merge.rules.policies import unknown_annotators
from labelwise.merge.rules.settings import load_tokenizer
from labelwise.merge.rules.splits import hashed_split
from labelwise.merge.tag_checks import TAG_CHECKS
from labelwise.merge.text_checks import TEXT_CHECKS, find_script
from labelwise.sources.brat import DEFAULTS
from labelwise.sources.formats import SUFFIXES, TABLES
from labelwise.sources.offsets import OTHER_TEXTS

MIN_SPANS = 10  # or rows; fewer may be chance
MIN_OFF_TOKENS = 1 / 6  # share of a dataset's spans
MIN_EMPTY, MIN_EMPTY_SHARE = 5, 1 / 4  # of the annotated documents of a brat corpus
MIN_COPIES = 0.9  # share of a dataset's answers
MIN_SAME_SPANS = 0.8  # share of a label's spans that another label has, too
MIN_OTHER_SPLIT = 0.1  # share of a dataset's rows
MIN_SAME_PERSON_F = 0.97  # F1 between two annotators
MIN_TEST_TEXTS = 20
MIN_OTHER_NAME = 0.2  # share of the spans of two labels that may be the same
MAX_SALTS = 1000  # that are tried
MAX_CHANCE = 0.001  # probability that two independent labels share no text
MIN_OVERLAPPED = 0.8  # share of a label's spans
USED = (
    Reason.ENTITY,
    Reason.SAME_SPAN,
    Reason.NESTED,
    Reason.CROSSING,
    Reason.OUTVOTED,
    Reason.CONFLICT,
    Reason.REMOVED,
)
TAG_PREFIXES = frozenset("BIOSELU")  # the prefixes of tags
DECLARABLE = ", ".join(filter(None, get_args(AnyOffsets)))
# The option of the section brat that may keep spans with an outcome, unless it is set already.
KEPT_BY = {Reason.MENTION_DIFFERS: "shifted", Reason.DISCONTINUOUS: "discontinuous", Reason.NOT_DECODABLE: "encoding"}


# Queries that are too long for the tables.


def _unusable_rows(data: Data) -> list[Evidence]:
    rows, spans = data.figures.rows, data.figures.labels(*USED, *UNUSED)
    bad = Counter({reason: rows[reason] for reason in ROW_PROBLEMS if rows[reason]})
    most = bad.total() >= MIN_SPANS and 2 * bad.total() > rows.total()
    if not most and (spans or not bad[Reason.UNSUPPORTED_FORMAT]):
        return []
    return some(bad.total(), data.figures.sample(*bad), all=rows.total(), reasons=largest_first(bad))


def _losses(data: Data) -> tuple[Counter[str], Counter[str], list[Reason]]:
    """Count usable and unusable spans, by label; list reasons. Undeclared labels count if there are no others."""
    used, unused = data.figures.labels(*USED), data.figures.labels(*UNUSED)
    undeclared = data.figures.labels(Reason.UNDECLARED)
    lost = unused if undeclared == unused and not used else unused - undeclared
    return used, lost, [reason for reason in UNUSED if lost & data.figures.labels(reason)]


def _other_offsets(data: Data, problem: str) -> list[Evidence]:
    """Find datasets whose lost spans fit by one other reading ("declare"), by several ("files"), or as OTHER_TEXTS."""
    dataset, files = data.dataset, data.files
    better = best_readings(data.merged.trials, files)
    best = next(
        (reading for reading in better.values() if reading.name in OTHER_TEXTS), next(iter(better.values()), None)
    )
    several = len({reading.name for reading in better.values()}) > 1 or len(better) < len(files)
    if not best or problem != (best.name if best.name in OTHER_TEXTS else "files" if several else "declare"):
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


def _too_few(merged: Merged) -> bool:  # too few texts to fill the splits
    return 0 < sum(merged.ledger.texts[split] for split in SPLITS) < len(SPLITS)


def _empty_splits(merged: Merged, *names: Split) -> Iterator[Evidence]:
    """Find empty splits that a hash could have filled; suggest a salt that fills all splits."""
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
    spans = used + lost
    if not spans or not any(file.path.name.endswith(TABLES) for file in data.dataset.files):
        return []
    bare = sorted(label for label in spans if label in TAG_PREFIXES or re.search(r"[=|]", label))
    once = [label for label, n in spans.items() if n == 1]
    problems = {
        "tags without labels": bare if 2 * sum(spans[label] for label in bare) >= spans.total() else [],
        "words as labels": sorted(label for label in spans if label and not re.search(r"\w", label)),
        "labels used once": once if len(spans) >= MIN_SPANS and 2 * len(once) > len(spans) else [],
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
    gone = _replaced_labels(data)
    others = [label for label in data.dataset.labels if label not in gone]
    return some(gone.total(), data.figures.sample(ALONE), labels=largest_first(gone), others=others)


def _replaced_spans(data: Data, stops: bool) -> list[Evidence]:
    alone, total = data.figures.passes[ALONE], data.figures.labels(*USED).total() + data.figures.replaced.total()
    if alone < MIN_SPANS or data.dataset.duplicates or _replaced_labels(data) or stops != (2 * alone > total):
        return []
    return some(alone, data.figures.sample(ALONE), all=total)


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
        if anonymous and counts["both"] >= MIN_SPANS and (f >= MIN_SAME_PERSON_F or numbered):
            part = min(one, other, key=lambda name: merged.ledger.datasets[name]["texts"])
            whole = f == 1 and counts["texts"] == merged.ledger.datasets[part]["texts"]
            yield from some(counts["texts"], one=one, other=other, f=f, part=part if whole else "")


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


def _similar_labels(ledger: Ledger) -> Iterator[Evidence]:
    for pair in combinations(ledger.labels, 2):
        if len({*map(simplify, pair)}) == 1:
            old, new = sorted(pair, key=lambda label: ledger.labels[label]["gold"])
            yield Evidence(values={"old": old, "new": new})


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


UNUSABLE_OF_ALL = "{n:,} of {all:span} can't be used: {reasons}"
IF_CORRECT = "If the data is correct, {add}"
TRIED = f"No other reading of the offsets fits better (tried: {DECLARABLE}, unescaped HTML, stripped texts)."
UNUSABLE = "{n:span has|spans have} unusable offsets"
RIGHT_COLUMN = f"Correct the column of the tags, or `labels`. {IF_CORRECT}"
EXPECTED = "expect_losses: true"
stop = partial(dataset_check, stops=True)
REPLACED = "{n:,} of {all:span} are only in rows that a later row of the same text replaced"
IF_BOTH_COUNT = "If both rows count, {add}"
OTHER_NAME = "{n:span has|spans have} the undeclared label {old!r}, and no text with one has a span of {new!r}"
IF_OTHER_NAME = (
    "If {old!r} is another name of {new!r}, {add} the first line; if it is a label that isn't wanted, the second"
)
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
ODD = {
    "tags without labels": ["its tags have no labels, only {labels!r}"],
    "words as labels": ["its labels look like words: {labels!r}"],
    "labels used once": ["{n:,} of {all:label} occur only once: {labels!r}. Is this the right column?"],
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
    stop(
        "offsets of unescaped text",
        lambda data: _other_offsets(data, "html"),
        f"{UNUSABLE}; {{left:,}} if counted as in unescaped HTML, where `&amp;` is one character",
        "Write the texts that were annotated: in Python, html.unescape(text).",
    ),
    stop(
        "offsets of stripped text",
        lambda data: _other_offsets(data, "stripped"),
        f"{UNUSABLE}; {{left:,}} if counted without the white space at the start of the text",
        "Write the texts that were annotated: in Python, text.lstrip().",
    ),
    stop(
        "spans inside words",
        _inside_words,
        "{n:,} of {all:span} start and end inside words",
        f"Write the offsets in the text that is in the file. {TRIED} {IF_CORRECT}",
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
    stop(
        "label after label",
        _label_after_label,
        "all spans of {labels} were replaced by later answers with other labels. Were these texts annotated once per "
        "label?",
        "If so, to keep all answers (or set `labels: [{others}]`, to ignore the rest), {add}",
        "duplicates: union",
    ),
    stop(
        "mostly replaced spans",
        lambda data: _replaced_spans(data, stops=True),
        REPLACED,
        IF_BOTH_COUNT,
        "duplicates: union  # or `latest`, if only the later row counts",
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
        "replaced spans",
        lambda data: _replaced_spans(data, stops=False),
        REPLACED,
        IF_BOTH_COUNT,
        "duplicates: union  # or `latest`, if only the later row counts",
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
        "Correct it in datasets.yml: it says who names in answers are, such as `{{1: ann}}`, or who answered where "
        "there is none. The names here: {known!r}.",
        people=True,
    ),
    Kind(
        "same annotator",
        _same_annotator,
        "{one!r} and {other!r} are anonymous, so they count as two annotators, but agree in {n:text} (F1 {f:.3f}). "
        "Same person?",
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
        lambda merged: _similar_labels(merged.ledger),
        "{old!r} and {new!r} may be one label: their names are nearly equal.",
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

UNDECLARED = "{file}: {dataset!r} isn't declared: {problem}"
LEAVE_OUT = "To leave it out for good, add an entry with `skip: true` to {declarations}."

# Files that no entry declares are found before the merge, and not stored.
FILES = (
    Kind("no data", nothing, UNDECLARED),
    Kind("unreadable file", nothing, UNDECLARED, LEAVE_OUT),
    Kind(
        "undeclared file",
        nothing,
        UNDECLARED,
        f"{LEAVE_OUT} To merge it, add there, with all labels that annotators were shown",
        "{entry}",
    ),
)
KINDS = {kind.name: kind for kind in (*READING, *ADVICE, *FILES)}


def check_undeclared(folder: Path, undeclared: Iterable[Undeclared]) -> Iterator[ImportCheck]:
    """Yield undeclarable files of a folder, each with the entry to add."""
    for candidate in undeclared:
        file = folder / candidate.entry.paths[0]
        patterns = patterns_in(file) if file.is_dir() else []
        path, labels = patterns or candidate.entry.path, candidate.entry.labels or ("LABEL",)
        entry = write_entries([msgspec.structs.replace(candidate.entry, path=path, labels=labels)])
        other = "undeclared file" if candidate.readable else "unreadable file"
        kind = other if patterns or file.name.endswith(SUFFIXES) else "no data"
        values = {
            "file": str(file),
            "problem": candidate.problem,
            "declarations": str(folder / DATASETS),
            "entry": entry,
        }
        yield ImportCheck(kind=kind, dataset=candidate.entry.name, values=values)


def find_checks(merged: Merged) -> list[ImportCheck]:
    """Run all checks, stopping ones first; if some stop, without advice."""
    checks = sorted((check for kind in READING for check in kind.find(merged)), key=lambda check: not check.stops)
    stopped = any(check.stops for check in checks)
    return checks if stopped else [*checks, *(check for kind in ADVICE for check in kind.find(merged))]


def describe(check: ImportCheck) -> Words:
    """Return the words of a finding."""
    return write_words(KINDS[check.kind], check)


def print_checks(checks: Iterable[ImportCheck]) -> None:
    """Print findings with examples, remedy and lines to paste."""
    for check in checks:
        sentence, remedy, lines = describe(check)
        (msg.fail if check.stops else msg.warn)(sentence)
        for place in check.sample or check.places:
            print(f"    {place}")
        if remedy:
            msg.more(f"{remedy}:" if lines else remedy)
        for line in lines:
            print(line if line.startswith("- ") else f"    {line}")  # an entry begins a line of datasets.yml
