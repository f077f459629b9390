"""The datasets of `datasets.yml`, conversion from brat, and decisions about spans.

It imports corpus and sources.
"""
