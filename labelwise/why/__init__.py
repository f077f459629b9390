"""Say of a file's line, a document or words what became of each row and each span there, and which setting decided.

It imports corpus, datasets and sources.
"""
