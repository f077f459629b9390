"""Evaluation: let a pipeline predict, then score, label by label.

It imports common, corpus and recognizer.
"""
