"""Find what became of each row and each span of a line, a document or words, and which setting decided.

`predicted` finds the annotated spans that speak for a prediction.

It imports corpus, datasets and sources.
"""
