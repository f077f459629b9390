"""Compare revisions: is one better, on which label, or is it chance?

It imports corpus and evaluate.
"""
