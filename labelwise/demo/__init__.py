"""The demo corpus, every byte from a seed.

It imports common and sources.
"""
