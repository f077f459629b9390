"""The corpus of a student: gold, and raw texts annotated by a teacher, a slower pipeline.

It imports corpus, datasets, evaluate, merge, merge.rules and sources.
"""
