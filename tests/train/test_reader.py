import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from labelwise.errors import InputError
from labelwise.train import reader
from labelwise.train.reader import PartitionedCorpus, read_docs

NLP = spacy.blank("en")


@pytest.fixture
def partitions(tmp_path):
    """Four partitions of five texts each; each has an entity and a rejected span of its own, and a missing value."""
    for part in range(4):
        docs = DocBin(attrs=["ENT_IOB", "ENT_TYPE"], store_user_data=True)
        for i in range(5):
            doc = NLP.make_doc(f"text {part} {i} cat")
            doc.set_ents([doc.char_span(9, 12, label=f"A{part}{i}")], missing=[doc[1:2]])
            doc.spans["incorrect_spans"] = [doc.char_span(0, 6, label=f"R{part}{i}")]
            docs.add(doc)
        docs.to_disk(tmp_path / f"part-{part:05d}.spacy")
    return tmp_path


def write(path: Path, docs: list[Doc]) -> None:
    DocBin(attrs=["ENT_IOB", "ENT_TYPE"], store_user_data=True, docs=docs).to_disk(path)


def texts(examples) -> list[str]:
    return [eg.reference.text for eg in examples]


def contents(docs) -> Counter:
    """How often there is each text with its annotation."""

    def spans_of(spans) -> tuple:
        return tuple((span.start, span.end, span.label_) for span in spans)

    return Counter(
        (
            doc.text,
            tuple(token.ent_iob for token in doc),
            spans_of(doc.ents),
            spans_of(doc.spans.get("incorrect_spans", ())),
        )
        for doc in docs
    )


def by_partition(epoch: list[str]) -> list[int]:
    return [int(text.split()[1]) for text in epoch]


def test_every_epoch_has_every_text_once_in_another_order(partitions):
    corpus = PartitionedCorpus(partitions, shuffle=True, seed=3)
    epochs = [texts(corpus(NLP)) for _ in range(3)]
    assert all(Counter(epoch) == Counter(epochs[0]) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert len(set(epochs[0])) == 20
    # Partitions are shuffled too, not only what is in them.
    assert len({tuple(dict.fromkeys(text.split()[1] for text in epoch)) for epoch in epochs}) > 1


def test_the_order_is_the_seeds_and_nobody_elses(partitions):
    one, other = (PartitionedCorpus(partitions, shuffle=True, seed=seed) for seed in (3, 3))
    state = random.getstate()
    for _ in range(2):
        random.seed(0)
        first = texts(one(NLP))
        random.seed(1)
        assert first == texts(other(NLP))
    assert first != texts(PartitionedCorpus(partitions, shuffle=True, seed=4)(NLP))
    random.setstate(state)
    list(one(NLP))
    assert random.getstate() == state


def test_shuffling_keeps_a_texts_annotation_with_it(partitions):
    for eg in PartitionedCorpus(partitions, shuffle=True)(NLP):
        _, part, i, _ = eg.reference.text.split()
        assert [(ent.text, ent.label_) for ent in eg.reference.ents] == [("cat", f"A{part}{i}")]
        assert eg.predicted.ents == ()


def test_unshuffled_is_in_order(partitions):
    expected = [f"text {part} {i} cat" for part in range(4) for i in range(5)]
    assert texts(PartitionedCorpus(partitions)(NLP)) == expected
    assert [doc.text for doc in read_docs(partitions, NLP)] == expected


@pytest.mark.parametrize(("limit", "count"), [(0, 20), (1, 1), (7, 7), (100, 20)])
def test_limit_counts_across_partitions(partitions, limit, count):
    assert len(texts(PartitionedCorpus(partitions, limit=limit)(NLP))) == count


def test_texts_without_tokens_are_left_out(tmp_path):
    DocBin(docs=[Doc(NLP.vocab), NLP.make_doc("a")]).to_disk(tmp_path / "part-00000.spacy")
    assert texts(PartitionedCorpus(tmp_path)(NLP)) == ["a"]


def test_an_empty_corpus_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"no \.spacy file; run the merge"):
        PartitionedCorpus(tmp_path)
    with pytest.raises(InputError, match=r"no \.spacy file"):
        list(read_docs(tmp_path, NLP))


def test_a_negative_limit_is_an_error(partitions):
    with pytest.raises(InputError, match="limit -1: give a number"):
        PartitionedCorpus(partitions, limit=-1)


def test_epochs_have_every_text_with_its_annotation(partitions):
    files = sorted(partitions.iterdir())
    expected = contents(doc for file in files for doc in DocBin().from_disk(file).get_docs(spacy.blank("en").vocab))
    corpus = PartitionedCorpus(partitions, shuffle=True, seed=1)
    for _ in range(2):
        assert contents(eg.reference for eg in corpus(spacy.blank("en"))) == expected
    assert corpus.counts["texts"] == 20


def test_streamed_partitions_are_not_mixed(partitions):
    epoch = by_partition(texts(PartitionedCorpus(partitions, shuffle=True)(NLP)))
    assert sum(one != other for one, other in pairwise(epoch)) == 3


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """The names of the files that are read, as they are."""
    names: list[str] = []
    own = reader.read_stored_docs

    def read(file):
        names.append(file.file.name)
        return own(file)

    monkeypatch.setattr(reader, "read_stored_docs", read)
    return names


@pytest.mark.parametrize("shuffle", [False, True])
def test_streamed_files_are_opened_when_their_turn_comes(partitions, opened, shuffle):
    corpus = PartitionedCorpus(partitions, shuffle=shuffle)
    for number, _ in enumerate(corpus(NLP), 1):
        assert len(opened) == min(4, (number - 1) // 5 + 1)
    assert sorted(opened) == [f"part-{part:05d}.spacy" for part in range(4)]
    list(corpus(NLP))
    assert len(opened) == 8


def test_epochs_can_be_read_at_the_same_time(partitions):
    corpus = PartitionedCorpus(partitions, shuffle=True)
    both = list(zip(corpus(NLP), corpus(NLP), strict=True))
    again = PartitionedCorpus(partitions, shuffle=True)
    assert [texts(epoch) for epoch in zip(*both, strict=True)] == [texts(again(NLP)), texts(again(NLP))]


def test_a_limit_takes_the_same_texts_in_every_epoch(partitions):
    corpus = PartitionedCorpus(partitions, shuffle=True, limit=7)
    epochs = [texts(corpus(NLP)) for _ in range(3)]
    expected = [*(f"text 0 {i} cat" for i in range(5)), "text 1 0 cat", "text 1 1 cat"]
    assert [sorted(epoch) for epoch in epochs] == [expected] * 3
    assert len({tuple(epoch) for epoch in epochs}) == 3


@pytest.mark.parametrize("limit", [5, 10])
def test_a_limit_at_the_end_of_a_partition_opens_no_further_one(partitions, opened, limit):
    corpus = PartitionedCorpus(partitions, limit=limit)
    assert len(texts(corpus(NLP))) == limit
    assert set(opened) == {f"part-{part:05d}.spacy" for part in range(limit // 5)}


def test_texts_are_the_examples_that_are_not_made_yet(partitions):
    options = {"shuffle": True, "seed": 5}
    made, later = PartitionedCorpus(partitions, **options), PartitionedCorpus(partitions, **options)
    for _ in range(2):
        for eg, text in zip(made(NLP), later.texts(NLP), strict=True):
            assert len(text) == len(eg)
            assert text.example().to_dict() == eg.to_dict()
            assert text.example() is not text.example()  # nothing is held
    assert made.counts == later.counts


def test_a_set_epoch_has_the_order_that_it_would_have_had(partitions):
    options = {"shuffle": True}
    one, other = (PartitionedCorpus(partitions, **options) for _ in range(2))
    epochs = [texts(one(NLP)) for _ in range(4)]
    other.epoch = 2
    assert [texts(other(NLP)), texts(other(NLP))] == epochs[2:]
    assert other.epoch == 4
    other.epoch = 0
    assert texts(other(NLP)) == epochs[0]


def test_long_texts_are_cut_and_counted(tmp_path):
    docs = [NLP.make_doc(text) for text in ("a b c d e", "f g", "h i j k", "", "l m n")]
    docs[0].set_ents([docs[0].char_span(4, 7, "A")])
    docs[0].spans["incorrect_spans"] = [docs[0].char_span(8, 9, "A")]
    docs[2].spans["incorrect_spans"] = [docs[2].char_span(0, 5, "A")]
    write(tmp_path / "part-00000.spacy", docs)
    corpus = PartitionedCorpus(tmp_path, max_words=2)
    examples = list(corpus(NLP))
    assert texts(examples) == ["a b ", "c d ", "e", "f g", "h i j ", "k", "l m ", "n"]
    assert [eg.predicted.text for eg in examples] == texts(examples)
    assert [[ent.text for ent in eg.reference.ents] for eg in examples] == [[], ["c d"], *[[]] * 6]
    rejected = [[span.text for span in eg.reference.spans.get("incorrect_spans", ())] for eg in examples]
    assert rejected == [[], [], ["e"], [], ["h i j"], [], [], []]
    assert +corpus.counts == {
        "texts": 4,
        "without tokens": 1,
        "cut": 3,
        "pieces": 8,
        "pieces that couldn't be cut": 1,
    }


def test_texts_are_counted_so_far_and_in_the_last_whole_epoch(partitions):
    corpus = PartitionedCorpus(partitions, limit=6)
    list(corpus(NLP))
    next(corpus(NLP))
    list(corpus(NLP))
    assert (corpus.counts["texts"], corpus.last_counts["texts"]) == (6, 6)
    next(corpus(NLP))
    assert (corpus.counts["texts"], corpus.last_counts["texts"]) == (1, 6)


@pytest.fixture
def half_covered(merging) -> Path:
    """A merged corpus of one text for both labels, and one for each label alone.

    On the text for PERSON alone, one span is gold, and one is in the middle of a token.
    """

    def task(text: str, *spans: tuple[int, int, str]) -> dict:
        return {"text": text, "spans": [{"start": start, "end": end, "label": label} for start, end, label in spans]}

    both, person, place = "Ann left Rome.", "Bob met Smithers twice.", "Oslo is cold."
    merging.add("persons", ["PERSON"], [task(both, (0, 3, "PERSON"))], split="train")
    merging.add("places", ["PLACE"], [task(both, (9, 13, "PLACE"))], split="train")
    merging.add("persons2", ["PERSON"], [task(person, (0, 3, "PERSON"), (8, 13, "PERSON"))], split="train")
    merging.add("places2", ["PLACE"], [task(place, (0, 4, "PLACE"))], split="train")
    merging.run()
    return merging.root / "corpus" / "train"


@pytest.mark.parametrize(
    ("coverage", "iob"),
    [
        ("by-label", {"Ann left Rome.": "B O B O", "Bob met Smithers twice.": "B - - - -", "Oslo is cold.": "B - - -"}),
        ("drop", {"Ann left Rome.": "B O B O"}),
        ("outside", {"Ann left Rome.": "B O B O", "Bob met Smithers twice.": "B O - O O", "Oslo is cold.": "B O O O"}),
    ],
)
def test_coverage_decides_on_texts_that_are_not_complete(half_covered, coverage, iob):
    corpus = PartitionedCorpus(half_covered, coverage=coverage)
    docs = [eg.reference for eg in corpus(NLP)]
    found = {doc.text: " ".join(token.ent_iob_ or "-" for token in doc) for doc in docs}
    assert (found, len(docs)) == (iob, len(iob))
    assert (corpus.counts["texts"], corpus.counts["not covered"]) == (len(iob), 3 - len(iob))


def test_pieces_keep_what_coverage_decided(half_covered):
    corpus = PartitionedCorpus(half_covered, coverage="outside", max_words=2)
    found = {eg.reference.text: [token.ent_iob_ or "-" for token in eg.reference] for eg in corpus(NLP)}
    pieces = {"Bob met ": ["B", "O"], "Smithers ": ["-"], "twice.": ["O", "O"]}
    assert {text: found[text] for text in pieces} == pieces


def test_nothing_left_to_train_on_is_an_error(merging):
    row = {"text": "Oslo is cold.", "spans": []}
    merging.add("places", ["PLACE"], [row], split="train")
    merging.add("persons", ["PERSON"], [{**row, "text": "Ann left."}], split="train")
    merging.run()
    corpus = PartitionedCorpus(merging.root / "corpus" / "train", coverage="drop")
    for _ in range(2):  # not only in the first epoch
        with pytest.raises(InputError, match=r"train: no text is left: .*'not covered': 2.*see `coverage`"):
            list(corpus(NLP))


def test_texts_without_tokens_alone_are_an_error(tmp_path):
    write(tmp_path / "part-00000.spacy", [Doc(NLP.vocab), Doc(NLP.vocab)])
    with pytest.raises(InputError, match=r"no text is left: \{'without tokens': 2\}"):
        list(PartitionedCorpus(tmp_path)(NLP))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_words": -5}, "max_words -5: give a number"),
        ({"coverage": "none"}, "coverage 'none': give by-label or drop or outside"),
    ],
)
def test_arguments_out_of_range_are_errors(partitions, arguments, message):
    with pytest.raises(InputError, match=message):
        PartitionedCorpus(partitions, **arguments)


def test_folds_leave_out_each_text_once(partitions):
    """Of three readers, each leaves out texts of its own, which stay the same when others come; all is counted."""
    whole = set(texts(PartitionedCorpus(partitions)(NLP)))
    left_out = []
    for fold in range(3):
        corpus = PartitionedCorpus(partitions, leave_out=f"{fold}/3", shuffle=True)
        kept = texts(corpus(NLP))
        assert len(kept) == len(set(kept))
        left_out.append(whole - set(kept))
        assert corpus.last_counts["left out"] == len(left_out[-1])
    assert sorted(text for fold in left_out for text in fold) == sorted(whole)
    assert all(len(fold) >= 3 for fold in left_out)
    (partitions / "part-00003.spacy").unlink()
    fewer = set(texts(PartitionedCorpus(partitions, leave_out="0/3")(NLP)))
    assert fewer.isdisjoint(left_out[0])


@pytest.mark.parametrize("fold", ["3/3", "x", "-1/3", "1", "1/0"])
def test_what_is_no_fold_is_an_error(fold, partitions):
    with pytest.raises(InputError, match=f"leave_out '{fold}'"):
        PartitionedCorpus(partitions, leave_out=fold)
