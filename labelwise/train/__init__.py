"""Training: spaCy's own loop, streamed, with checkpoints.

It imports common, corpus and recognizer.
"""
