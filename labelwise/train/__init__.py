"""Training: a loop that takes spaCy's steps, streamed, with checkpoints.

It imports corpus.
"""
