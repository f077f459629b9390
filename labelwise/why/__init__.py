"""Find what became of each row and span of a line, a document or words, and which setting decided; explain predictions.

It imports corpus, datasets and sources.
"""
