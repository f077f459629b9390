"""The corpus of a student: gold, and raw texts as a teacher, a slower pipeline, annotates them.

It imports corpus, datasets, evaluate, merge, merge.rules and sources.
"""
