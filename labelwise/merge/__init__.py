"""The merge: datasets into one corpus of partitions, in bounded memory.

It imports merge.rules, corpus, datasets and sources.
"""
