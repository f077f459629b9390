"""Hand spans back to where people annotate: brat, Prodigy, Label Studio, doccano.

It imports corpus, evaluate and sources.
"""
