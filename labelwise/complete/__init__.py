"""Completion: what isn't known of the texts in train, filled with what a per-label pipeline finds, for spaCy's ner.

It imports common, corpus, recognizer and train.
"""
