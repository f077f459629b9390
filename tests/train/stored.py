"""Docs as the reader of partitions yields them, made without a file."""

from spacy.tokens import Doc

from labelwise.corpus.annotation import annotation_of, is_merged
from labelwise.corpus.docbin_reader import StoredDoc

REJECTED = "incorrect_spans"


def store(doc: Doc) -> StoredDoc:
    """Store a Doc without a file."""
    words, iob, labels, spaces = (doc.to_array(name) for name in ("ORTH", "ENT_IOB", "ENT_TYPE", "SPACY"))
    rejected = [(span.start, span.end, span.label) for span in doc.spans.get(REJECTED, ())]
    gold = [(span.start, span.end, span.label) for span in doc.spans.get("gold", ())]
    strings = {
        key: doc.vocab.strings[key]
        for key in {*words.tolist(), *labels.tolist(), *(span[2] for span in (*gold, *rejected))}
    }
    merged = annotation_of(doc) if is_merged(doc) else None
    return StoredDoc(words, spaces.astype(bool), iob, labels, gold, rejected, strings, merged)
