"""Evaluation: predict test or raw texts, and score, label by label.

It imports corpus and sources.
"""
