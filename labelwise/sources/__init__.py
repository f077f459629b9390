"""What annotations come from: brat, Prodigy, `.spacy` files, and how data sets are declared.

It imports common and corpus.
"""
