"""How often forms are marked and free, against counting by hand on small texts, and by brute force on a corpus."""

from collections import Counter

import numpy as np
import pytest
import spacy

from labelwise.corpus.annotation import GOLD, Annotation, annotate
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.forms import LONGEST, Forms
from labelwise.corpus.manifest import find_partitions, read_manifest
from tests.conftest import write_docs

LABELS = ["A", "B"]


def stored(folder, *texts: tuple[str, list[tuple[int, int, str]], dict]) -> list[StoredDoc]:
    """Texts with spans in tokens, and the labels that they aren't complete for."""
    nlp = spacy.blank("en")
    docs = []
    for text, spans, unknown in texts:
        doc = nlp(text)
        doc.spans[GOLD] = [doc[start:end] for start, end, _ in spans]
        doc.spans[GOLD] = [spacy.tokens.Span(doc, *span) for span in spans]
        gold = [(doc[s:e].start_char, doc[s:e].end_char, label, ["a"]) for s, e, label in dict.fromkeys(spans)]
        annotate(doc, Annotation(gold, [], unknown, ["a"]))
        docs.append(doc)
    write_docs(docs, folder / "a.spacy")
    return list(read_stored_docs(folder / "a.spacy"))


def count(docs: list[StoredDoc], labels: list[str]) -> Forms:
    forms = Forms(labels)
    for doc in docs:
        forms.look_for(doc, forms.spans(doc))
        forms.mark(doc)
    for doc in docs:
        forms.release(doc)
    return forms


def test_forms_are_marked_or_free_by_label(tmp_path):
    docs = stored(
        tmp_path,
        ("big cat sat", [(0, 2, "A")], {}),
        ("a big cat and a  cat", [(2, 3, "B")], {}),
        ("big cat", [], {"B": "none"}),
        ("cat", [(0, 1, "B")], {"A": "none"}),
    )
    forms = count(docs, LABELS)

    def counts(doc: int, start: int, end: int) -> list[tuple[int, int]]:
        """Marked and free by label."""
        keys = forms.keys(np.repeat(forms.form_keys(docs[doc], [(start, end)]), 2), np.arange(2))
        return list(zip(forms.marked.of(keys).tolist(), forms.free.of(keys).tolist(), strict=True))

    # "big cat" is A once, and free for A twice; for B, which it never is, nothing is looked for.
    assert counts(0, 0, 2) == [(1, 2), (0, 0)]
    # "cat" is B twice, and free once more in the second text; in the first it is a part of A's, the third isn't known.
    assert counts(0, 1, 2) == [(0, 0), (2, 1)]


def test_counts_are_those_of_looking_at_every_place(demo_corpus):
    labels = read_manifest(demo_corpus).labels
    docs = [doc for file in find_partitions(demo_corpus / "train") for doc in read_stored_docs(file)]
    marked, free = Counter(), Counter()
    texts = []
    for doc in docs:
        words = [doc.strings[word] for word in doc.words.tolist()]
        spans = {(start, end, doc.strings[label]) for start, end, label in doc.gold}
        texts.append((words, spans, doc.annotation.uncovered))
        marked.update((tuple(words[start:end]), label) for start, end, label in spans)
    for words, spans, unknown in texts:
        for start in range(len(words)):
            for end in range(start + 1, min(len(words), start + LONGEST) + 1):
                for label in labels:
                    taken = any(
                        (s < end and start < e and name == label) or (s <= start and end <= e and e - s > end - start)
                        for s, e, name in spans
                    )
                    if (tuple(words[start:end]), label) in marked and label not in unknown and not taken:
                        free[tuple(words[start:end]), label] += 1
    forms = count(docs, labels)
    seen = {}
    for doc, (words, spans, _) in zip(docs, texts, strict=True):
        for start, end, label in spans:
            key = forms.keys(forms.form_keys(doc, [(start, end)]), np.array([labels.index(label)]))
            seen[tuple(words[start:end]), label] = (int(forms.marked.of(key)[0]), int(forms.free.of(key)[0]))
    assert len(seen) > 20
    assert sum(free.values()) > 3
    assert seen == {name: (n, free[name]) for name, n in marked.items()}


@pytest.mark.parametrize("words", [0, 1])
def test_a_text_may_have_hardly_any_words(words, tmp_path):
    (doc,) = stored(tmp_path, ("cat" * words, [], {}))
    forms = Forms(LABELS)
    assert len(forms.occurrences(doc).keys) == 0
