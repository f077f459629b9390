"""Find what became of each row and each span of a line, a document or words, and which setting decided.

It imports corpus, datasets and sources.
"""
