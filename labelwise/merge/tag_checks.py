"""Import checks of misread tags, and of texts that aren't sentences of words."""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Mapping
from itertools import chain, islice

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
from labelwise.sources.formats import TABLES
from labelwise.sources.prodigy_row import TAGGED as TAGS_IN_TEXT
from labelwise.sources.tags import BEHIND, BELOW, LOWER_CASE, MIDDLE, OTHER_OUTSIDE, find_recurring
from labelwise.sources.webanno import custom_layers

MIN_PUNCTUATED = 1 / 6  # share of a dataset's spans; 1 in 40 in public corpora
MIN_BEHIND = 0.05  # share of a label's spans
MIN_PIECES = 0.05  # share of a dataset's words that continue another word
MIN_TOKENS = 100  # of a dataset
TAGGED = (*TABLES, ".parquet")
MIN_SENTENCES = 10  # in a dataset's only text
MAX_FILES = 50  # files of a dataset to search for layers
SPELLINGS = (MIDDLE, BELOW, BEHIND, LOWER_CASE)
PIECE = re.compile(r"##\w+")  # as BERT's tokenizer writes them
# A tag inside an entity or at its end, in any spelling.
INSIDE = re.compile(r"(?i)[imel]|[imel][a-z]*[\W_](?P<label>.+)|(?P<other>.+)[\W_][imel][a-z]*")
SENTENCE_END = re.compile(r" [.!?。！？](?= )")


def _tags_as_labels(data: Data) -> list[Evidence]:
    """Find labels with prefixes of tags, O as the most frequent one, or labels of all words inside entities."""
    labels = data.figures.labels(*{reason for _, reason in data.figures.spans})
    labels = Counter({name: n for name, n in labels.items() if name})
    tags = Counter({name: n for name, n in labels.items() if MIDDLE.fullmatch(name)})
    recurring = (2 * tags.total() > labels.total() and find_recurring(tags)) or _inside_tags(data, labels)
    outside = labels["O"] if labels["O"] == max(labels.values(), default=0) else 0
    return some(outside or len(recurring), labels=largest_first(tags if tags and not outside else labels))


def _inside_tags(data: Data, labels: Mapping[str, int]) -> list[str]:
    """List labels such as I, INSIDE-PER or PER/E whose spans are all directly behind those of I, START-PER or PER/B."""
    before: defaultdict[str, set[str]] = defaultdict(set)
    for label, other in {pair for sampled in data.sample for pair in sampled.behind}:
        before[label] |= {other} - {label}
    matches = [match for label in before if labels[label] >= MIN_SPANS and (match := INSIDE.fullmatch(label))]
    own = [(match[0], match["label"] or match["other"] or "") for match in matches]
    return [label for label, rest in own if all(other and rest in other for other in before[label])]


def _misspelled_tags(data: Data) -> list[Evidence]:
    if not all(file.path.name.endswith(TAGGED) for file in data.dataset.files):
        return []
    labels = data.figures.labels(*{reason for _, reason in data.figures.spans})
    odd = Counter({name: n for name, n in labels.items() if _is_misspelled(name, labels)})
    return some(odd.total(), labels=largest_first(odd))


def _is_misspelled(name: str, labels: Container[str]) -> bool:
    """Return whether a label is another one with a prefix, or a tag that may be outside, but `OTHER`."""
    parts = (found["label"] for spelled in SPELLINGS if (found := spelled.fullmatch(name)))
    return any(part in labels for part in parts) or (name in OTHER_OUTSIDE and name != "OTHER")


def _begun_at_each_token(data: Data) -> list[Evidence]:
    """Find labels whose spans have one token each, and in many texts are directly behind one another."""
    if not all(file.path.name.endswith(TAGGED) for file in data.dataset.files):
        return []
    spans, tokens, texts = Counter[str](), Counter[str](), Counter[str]()
    for sampled in data.sample:
        spans.update(sampled.spans)
        tokens.update(sampled.labels)
        texts.update(label for label, other in sampled.behind if label == other)
    single = {label: texts[label] for label in data.dataset.labels if spans[label] == tokens[label]}
    found = {label: n for label, n in single.items() if n >= max(MIN_SPANS, MIN_BEHIND * spans[label])}
    return some(sum(found.values()), labels=largest_first(found))


def _label_of_most_words(data: Data) -> list[Evidence]:
    if not all(file.path.name.endswith(TAGGED) for file in data.dataset.files):
        return []
    words = sum(sampled.tokens for sampled in data.sample)
    covered: Counter[str] = Counter()
    for sampled in data.sample:
        covered.update({label: n for label, n in sampled.labels.items() if label in data.dataset.labels})
    label, n = max(covered.items(), key=lambda item: item[1], default=("", 0))
    return some(words >= MIN_TOKENS and 2 * n > words and n, all=words, label=label)


def _punctuated_spans(data: Data) -> list[Evidence]:
    own = {*data.dataset.labels}
    spans = sum(n for sampled in data.sample for label, n in sampled.spans.items() if label in own)
    quotes = [f"{label}  {words}" for sampled in data.sample for label, words in sampled.punctuated if label in own]
    many = len(quotes) >= max(MIN_SPANS, MIN_PUNCTUATED * spans) and not _label_of_most_words(data)
    return some(many and len(quotes), quotes=quotes[:3], all=spans)


def _tags_in_texts(data: Data) -> list[Evidence]:
    tagged = [match[0] for sampled in data.sample if not sampled.spans and (match := TAGS_IN_TEXT.search(sampled.text))]
    return some(len(tagged) >= MIN_SPANS and len(tagged), tags=tagged[:MAX_LISTED])


def _word_pieces(data: Data) -> list[Evidence]:
    pieces = [piece for sampled in data.sample for piece in PIECE.findall(sampled.text)]
    words = sum(len(sampled.text.split()) for sampled in data.sample if pieces)
    return some(len(pieces) >= MIN_PIECES * words and len(pieces), pieces=[*dict.fromkeys(pieces)][:MAX_LISTED])


def _one_text(data: Data) -> list[Evidence]:
    if len(data.sample) != 1 or not all(file.path.name.endswith(TABLES) for file in data.dataset.files):
        return []
    ends = len(SENTENCE_END.findall(f"{data.sample[0].text} "))
    return some(ends >= MIN_SENTENCES and data.figures.rows.total() == 1 and ends)


def _other_layers(merged: Merged) -> list[Evidence]:
    datasets_of: dict[str, set[str]] = {}
    for dataset in merged.datasets:
        files = (file.path for file in dataset.files if file.path.suffix == ".tsv")
        for layer in chain.from_iterable(map(custom_layers, islice(files, MAX_FILES))):
            datasets_of.setdefault(layer, set()).add(dataset.name)
    return some(len(datasets_of), layers=sorted(datasets_of), datasets=sorted(set().union(*datasets_of.values())))


TAG_CHECKS = (
    dataset_check(
        "tags as labels",
        _tags_as_labels,
        "its labels look like tags of tokens (BIO, BILOU, BMES): {labels}",
        "Write one span for each entity, with its label alone, or tokens with tags such as B-PER, I-PER and O. "
        f"{IF_CORRECT}",
        EXPECTED,
        stops=True,
    ),
    dataset_check(
        "punctuated spans",
        _punctuated_spans,
        "{n:,} of {all:span} end with a punctuation mark behind words",
        f"If ends are a token or a character too late, correct them. {IF_CORRECT}",
        EXPECTED,
        stops=True,
    ),
    dataset_check(
        "tags in texts",
        _tags_in_texts,
        "{n:text} without spans {n:~has|have} tags in the text: {tags!r}",
        f"Write the texts without them, with `spans`. {IF_CORRECT}",
        EXPECTED,
        stops=True,
    ),
    dataset_check(
        "pieces of words",
        _word_pieces,
        "its texts have {n:piece} of words: {pieces!r}",
        f"Write the words in place of the pieces that a tokenizer made. {IF_CORRECT}",
        EXPECTED,
        stops=True,
    ),
    dataset_check(
        "misspelled tags",
        _misspelled_tags,
        "some labels look like tags that aren't written like the others: {labels}",
        "If they are tags, write them like the others, such as B-PER and O.",
    ),
    dataset_check(
        "spans of one token",
        _begun_at_each_token,
        "each span of {labels} is one token, and in {n:text} one is directly behind another",
        "If they are parts of one entity, write I- for all its tokens but the first, such as B-PER I-PER.",
    ),
    dataset_check(
        "label of most words",
        _label_of_most_words,
        "{n:,} of {all:word} have the label {label!r}.",
        "If it means that a word is in no entity, write O in its place.",
    ),
    dataset_check(
        "no blank line",
        _one_text,
        "{n:sentence} are one text.",
        "Put a blank line after each sentence; or, if a column numbers the sentences, name the columns in a first "
        "line, such as `# global.columns = SENT_ID ID FORM NER`.",
    ),
    Kind(
        "other layers",
        _other_layers,
        "Beside NamedEntity, spans of the {layers:layer|layers} are read in {datasets:dataset|datasets}.",
        "To leave them out, delete their labels in datasets.yml.",
    ),
)
