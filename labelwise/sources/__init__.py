"""Readers of annotations, a module for each format; none of them knows another.

It imports corpus.
"""
