"""Hand spans back to where people annotate: brat, Prodigy, Label Studio, doccano.

It imports corpus, datasets, evaluate, merge.rules and sources.
"""
