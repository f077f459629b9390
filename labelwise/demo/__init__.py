"""The demo corpus, every byte of it decided by a seed.

It imports corpus and datasets.
"""
