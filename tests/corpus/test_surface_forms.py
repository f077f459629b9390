"""Counts of surface forms, against looking at every place of a corpus."""

from collections import Counter

import numpy as np

from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.manifest import find_partitions, read_manifest
from labelwise.corpus.surface_forms import MAX_WORDS, SurfaceForms


def count(docs: list[StoredDoc], labels: list[str]) -> SurfaceForms:
    forms = SurfaceForms(labels)
    for doc in docs:
        forms.look_for(doc)
        forms.mark(doc)
    for doc in docs:
        forms.release(doc)
    return forms


def test_counts_are_those_of_looking_at_every_place(demo_corpus):
    labels = read_manifest(demo_corpus).labels
    docs = [doc for file in find_partitions(demo_corpus / "train") for doc in read_stored_docs(file)]
    for doc in docs[::3]:
        doc.annotation.uncovered[labels[0]] = "none"
    marked, free = Counter(), Counter()
    texts = []
    for doc in docs:
        words = [doc.strings[word] for word in doc.words.tolist()]
        spans = {(start, end, doc.strings[label]) for start, end, label in doc.gold}
        texts.append((words, spans, doc.annotation.uncovered))
        marked.update((tuple(words[start:end]), label) for start, end, label in spans)
    for words, spans, unknown in texts:
        for start in range(len(words)):
            for end in range(start + 1, min(len(words), start + MAX_WORDS) + 1):
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
    assert sum(free.values()) == forms.free.of(forms.free.keys).sum() > 3
    assert seen == {name: (n, free[name]) for name, n in marked.items()}
