"""The report: one HTML page that says which labels are ready, and what to do next.

It imports check, compare, corpus, datasets, evaluate and merge.
"""
