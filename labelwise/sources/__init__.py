"""The sources of annotations: brat, Prodigy, `.spacy` files, and how data sets are declared.

It imports corpus.
"""
