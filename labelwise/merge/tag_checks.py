"""Import checks of misread tags, and of texts that aren't sentences of words."""

import re
from collections import Counter
from itertools import chain, islice

from labelwise.merge.check_kinds import MAX_LISTED, Data, Found, Merged, check, dataset_check, largest_first, some
from labelwise.sources.formats import TABLES
from labelwise.sources.tags import MIDDLE, find_recurring
from labelwise.sources.webanno import custom_layers

MIN_PIECES = 0.05  # share of the words of a dataset that continue another one
MIN_TOKENS = 100  # of a dataset
TAGGED = (*TABLES, ".parquet")
MIN_SENTENCES = 10  # in the only text of a dataset
MAX_FILES = 50  # of a dataset, searched for layers
PIECE = re.compile(r"##\w+")  # as BERT's tokenizer writes them
SENTENCE_END = re.compile(r" [.!?。！？](?= )")


def tags_as_labels(data: Data) -> list[Found]:
    """Find datasets whose labels are mostly tags, with several prefixes for a label."""
    labels = data.figures.labels(*{reason for _, reason in data.figures.spans})
    tags = Counter({name: n for name, n in labels.items() if name and MIDDLE.fullmatch(name)})
    return some(2 * tags.total() > labels.total() and len(find_recurring(tags)), labels=largest_first(tags))


def label_of_most_words(data: Data) -> list[Found]:
    """Find tables with a label of most words, like a tag for words outside spans."""
    if not all(file.path.name.endswith(TAGGED) for file in data.dataset.files):
        return []
    texts = [one for one in data.merged.sample if data.dataset.name in one.datasets]
    words = sum(one.tokens for one in texts)
    covered: Counter[str] = Counter()
    for one in texts:
        covered.update({label: n for label, n in one.labels.items() if label in data.dataset.labels})
    label, n = max(covered.items(), key=lambda item: item[1], default=("", 0))
    return some(words >= MIN_TOKENS and 2 * n > words and n, all=words, label=label)


def word_pieces(data: Data) -> list[Found]:
    """Find datasets with a tokenizer's word pieces."""
    texts = [one.text for one in data.merged.sample if data.dataset.name in one.datasets]
    pieces = [piece for text in texts for piece in PIECE.findall(text)]
    words = sum(len(text.split()) for text in texts if pieces)
    return some(len(pieces) >= MIN_PIECES * words and len(pieces), pieces=[*dict.fromkeys(pieces)][:MAX_LISTED])


def one_text(data: Data) -> list[Found]:
    """Find tables that are one text of many sentences."""
    texts = [one.text for one in data.merged.sample if data.dataset.name in one.datasets]
    if len(texts) != 1 or not all(file.path.name.endswith(TABLES) for file in data.dataset.files):
        return []
    ends = len(SENTENCE_END.findall(f"{texts[0]} "))
    return some(ends >= MIN_SENTENCES and data.figures.rows.total() == 1 and ends)


def other_layers(merged: Merged) -> list[Found]:
    """Find custom layers whose labels are read beside named entities, in INCEpTION's exports."""
    found: dict[str, set[str]] = {}
    for dataset in merged.datasets:
        files = (file.path for file in dataset.files if file.path.suffix == ".tsv")
        for layer in chain.from_iterable(map(custom_layers, islice(files, MAX_FILES))):
            found.setdefault(layer, set()).add(dataset.name)
    return some(len(found), layers=sorted(found), datasets=sorted(set().union(*found.values())))


TAG_CHECKS = (
    dataset_check(
        "tags as labels",
        tags_as_labels,
        "its labels look like tags of tokens (BIO, BILOU, BMES): {labels}",
        "Write one span for each entity, with its label alone, or the tokens with their tags (docs/formats.md). If the "
        "data is correct, {add}",
        "expect_losses: true",
        stops=True,
    ),
    dataset_check(
        "pieces of words",
        word_pieces,
        "its texts have {n:piece} of words: {pieces!r}",
        "Write the words in place of the pieces that a tokenizer made. If the data is correct, {add}",
        "expect_losses: true",
        stops=True,
    ),
    dataset_check(
        "label of most words",
        label_of_most_words,
        "{n:,} of {all:word} have the label {label!r}.",
        "If it means that a word is in no entity, write O in its place.",
    ),
    dataset_check(
        "no blank line",
        one_text,
        "{n:sentence} are one text.",
        "Put a blank line after each sentence.",
    ),
    check(
        "other layers",
        other_layers,
        "Beside NamedEntity, spans of the {layers:layer|layers} are read in {datasets:dataset|datasets}.",
        "To leave them out, delete their labels in datasets.yml.",
    ),
)
