"""The sources of annotations: brat, Prodigy, `.spacy` files, and how data sets are declared.

It imports common and corpus.
"""
