"""Decisions about one text: pure functions, and the policies that they follow.

It imports corpus, datasets and sources.
"""
