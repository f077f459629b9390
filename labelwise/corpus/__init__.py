"""The files of a merged corpus: a Doc's content, and how `.spacy` files are written and read.

It imports no other folder of labelwise.
"""
