"""The files between the merge and all that follows: what a Doc carries, how `.spacy` files are written and read.

It imports no other folder of labelwise.
"""
