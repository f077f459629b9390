"""The demo corpus, decided by a seed to the byte.

It imports corpus and datasets.
"""
