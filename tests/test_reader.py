import random
from collections import Counter

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from labelwise.errors import InputError
from labelwise.reader import PartitionedCorpus, read_docs

NLP = spacy.blank("en")


@pytest.fixture
def partitions(tmp_path):
    """Four partitions of five texts each; each has an entity and user data of its own."""
    for part in range(4):
        docs = DocBin(attrs=["ENT_IOB", "ENT_TYPE"], store_user_data=True)
        for i in range(5):
            doc = NLP.make_doc(f"text {part} {i} cat")
            doc.set_ents([doc.char_span(9, 12, label=f"A{part}{i}")])
            docs.add(doc)
        docs.to_disk(tmp_path / f"part-{part:05d}.spacy")
    return tmp_path


def texts(examples) -> list[str]:
    return [eg.reference.text for eg in examples]


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
