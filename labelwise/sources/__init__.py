"""Readers of annotations, an independent module for each format.

It imports corpus.
"""
