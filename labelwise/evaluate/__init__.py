"""Evaluation: let a pipeline predict, test texts or raw ones, and score, label by label.

It imports corpus and sources.
"""
