"""Training: spaCy's steps, streamed, with checkpoints.

It imports corpus.
"""
