"""Hand spans back to where people annotate: brat, Prodigy, Label Studio, doccano.

It imports common, corpus, evaluate and sources.
"""
