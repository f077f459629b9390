"""Pure functions that merge one text's answers, and policies.

It imports corpus, datasets and sources.
"""
