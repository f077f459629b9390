"""The report: one HTML page that begins with a sentence: may a pipeline be used, and what is there to do next?

It imports compare, corpus, datasets, evaluate and merge.
"""
