import random
from collections import Counter
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from labelwise.base.errors import InputError
from labelwise.corpus.annotation import Annotation, annotate, annotation_of
from labelwise.merge.rules.policies import Policies
from labelwise.train import reader
from labelwise.train.reader import PartitionedCorpus, deal_out
from tests.conftest import task

NLP = spacy.blank("en")


def write(path: Path, docs: list[Doc]) -> None:
    DocBin(attrs=["ENT_IOB", "ENT_TYPE"], store_user_data=True, docs=docs).to_disk(path)


@pytest.fixture
def partitions(tmp_path) -> Path:
    for part in range(4):
        docs = [NLP.make_doc(f"text {part} {number} cat") for number in range(5)]
        for number, doc in enumerate(docs):
            doc.set_ents([doc.char_span(9, 12, label=f"A{part}{number}")], missing=[doc[1:2]])
            doc.spans["incorrect_spans"] = [doc.char_span(0, 6, label=f"R{part}{number}")]
        write(tmp_path / f"part-{part:05d}.spacy", docs)
    return tmp_path


def texts(examples) -> list[str]:
    return [eg.reference.text for eg in examples]


def contents(docs) -> Counter:
    return Counter(f"{doc.to_json()} {[token.ent_iob for token in doc]}" for doc in docs)


def test_every_epoch_has_every_text_with_its_annotation_once_in_another_order(partitions):
    files = sorted(partitions.iterdir())
    expected = contents(doc for file in files for doc in DocBin().from_disk(file).get_docs(spacy.blank("en").vocab))
    corpus = PartitionedCorpus(partitions, shuffle=True, seed=3)
    epochs = [[eg.reference for eg in corpus(NLP)] for _ in range(3)]
    assert [contents(epoch) for epoch in epochs] == [expected] * 3
    assert len(expected) == corpus.counts["texts"] == 20
    orders = [tuple(doc.text for doc in epoch) for epoch in epochs]
    assert len(set(orders)) == 3
    # Partitions are shuffled, too, but not mixed.
    parts = [tuple(dict.fromkeys(text.split()[1] for text in order)) for order in orders]
    assert len(set(parts)) > 1
    for order, part in zip(orders, parts, strict=True):
        assert sorted(order, key=lambda text: part.index(text.split()[1])) == list(order)


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


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    names: list[str] = []
    own = reader.read_stored_docs

    def read(partition):
        names.append(partition.file.name)
        return own(partition)

    monkeypatch.setattr(reader, "read_stored_docs", read)
    return names


@pytest.mark.guarantee("streaming")
@pytest.mark.parametrize("shuffle", [False, True])
def test_streamed_files_are_opened_when_their_turn_comes(partitions, opened, shuffle):
    corpus = PartitionedCorpus(partitions, shuffle=shuffle)
    for number, _ in enumerate(corpus(NLP), 1):
        assert len(opened) == min(4, (number - 1) // 5 + 1)
    assert sorted(opened) == [f"part-{part:05d}.spacy" for part in range(4)]


@pytest.mark.parametrize(("limit", "count", "files"), [(0, 20, 4), (1, 1, 1), (5, 5, 1), (7, 7, 2), (100, 20, 4)])
def test_a_limit_takes_the_same_texts_in_every_epoch_and_opens_no_more_files(partitions, opened, limit, count, files):
    corpus = PartitionedCorpus(partitions, shuffle=True, limit=limit)
    epochs = [texts(corpus(NLP)) for _ in range(2)]
    expected = [f"text {part} {number} cat" for part in range(4) for number in range(5)][:count]
    assert [sorted(epoch) for epoch in epochs] == [expected] * 2
    assert len(set(opened)) == files


def test_long_texts_are_cut_and_counted(tmp_path):
    """As late as possible at white space, and never inside a span; a piece keeps its annotation by a merge."""
    docs = [NLP.make_doc(text) for text in ("a b c d e", "f g", "h i j k", "", "l\nm n s", "o p q r")]
    docs[0].set_ents([docs[0].char_span(2, 5, "A")])
    docs[0].spans["incorrect_spans"] = [docs[0].char_span(8, 9, "A")]
    docs[2].spans["incorrect_spans"] = [docs[2].char_span(0, 5, "A")]
    docs[5].spans["gold"] = [docs[5].char_span(2, 5, "A")]
    annotate(docs[5], Annotation([(2, 5, "A", ["d"]), (4, 7, "B", [])], [(0, 1, "B")], {"B": "none"}))
    write(tmp_path / "part-00000.spacy", docs)
    corpus = PartitionedCorpus(tmp_path, max_words=2)
    examples = list(corpus(NLP))
    assert texts(examples) == ["a ", "b c ", "d e", "f g", "h i j ", "k", "l\n", "m n ", "s", "o ", "p q ", "r"]
    assert [[ent.text for ent in eg.reference.ents] for eg in examples] == [[], ["b c"], *[[]] * 10]
    rejected = [[span.text for span in eg.reference.spans.get("incorrect_spans", ())] for eg in examples]
    assert rejected == [[], [], ["e"], [], ["h i j"], *[[]] * 7]
    assert [span.text for span in examples[10].reference.spans["gold"]] == ["p q"]
    one, two, three = (annotation_of(eg.reference) for eg in examples[9:])
    assert (one.gold, two.gold, three.gold) == ([], [(0, 3, "A", ["d"]), (2, 3, "B", [])], [(0, 1, "B", [])])
    assert (one.rejected, two.rejected, three.uncovered) == ([(0, 1, "B")], [], {"B": "none"})
    assert corpus.counts == {"texts": 5, "without tokens": 1, "cut": 4, "longer, as they couldn't be cut": 1}


@pytest.mark.parametrize("coverage", ["by-label", "outside"])
def test_coverage_outside_makes_training_texts_complete_for_all_labels(merging, coverage):
    for split in ("train", "dev"):
        merging.add(f"A {split}", ["A"], [task(f"Ann left in {split}.", (0, 3))], split=split)
        merging.add(f"B {split}", ["B"], [task(f"She met Bob in {split}.", (8, 11, "B"))], split=split)
    merging.run(policies=Policies(coverage=coverage))
    counts = {}
    for split in ("train", "dev"):
        texts = PartitionedCorpus(merging.root / "corpus" / split).texts()
        counts[split] = sorted(label for text in texts for label in text.annotation.uncovered)
    assert counts == {"train": [] if coverage == "outside" else ["A", "B"], "dev": ["A", "B"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"limit": -1}, "limit -1: give a number"),
        ({"max_words": -5}, "max_words -5: give a number"),
        ({"folds": -3}, "folds -3: give a number"),
    ],
)
def test_arguments_out_of_range_are_errors(partitions, arguments, message):
    with pytest.raises(InputError, match=message):
        PartitionedCorpus(partitions, **arguments)


def test_without_texts_or_files_there_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"no \.spacy file; run the merge"):
        PartitionedCorpus(tmp_path)
    write(tmp_path / "part-00000.spacy", [Doc(NLP.vocab), Doc(NLP.vocab)])
    corpus = PartitionedCorpus(tmp_path)
    for _ in range(2):  # not only in the first epoch
        with pytest.raises(InputError, match=r"no text is left: \{'without tokens': 2\}"):
            list(corpus(NLP))


def test_a_batch_is_dealt_out_so_that_all_ranks_have_about_as_many_words():
    texts = ["a" * length for length in (3, 90, 40, 2, 31, 55, 20, 19)]
    shares = deal_out(texts, 2)
    assert [sorted(map(len, share)) == [*map(len, share)] for share in shares] == [True, True]
    assert sorted(text for share in shares for text in share) == sorted(texts)
    one, other = (sum(map(len, share)) for share in shares)
    assert abs(one - other) <= 10
    assert deal_out(texts[:1], 3) == [texts[:1], [], []]
