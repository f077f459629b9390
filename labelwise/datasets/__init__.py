"""Datasets as `datasets.yml` declares them: found, declared, converted from brat; and decisions about their spans.

It imports corpus and sources.
"""
