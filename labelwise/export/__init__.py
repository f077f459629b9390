"""Hand spans back to where people annotate: brat, Prodigy, Label Studio, doccano.

It imports corpus, evaluate, merge.rules and sources.
"""
