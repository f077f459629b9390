"""Export spans to annotation tools: brat, Prodigy, Label Studio, doccano.

It imports corpus, datasets, evaluate, merge.rules and sources.
"""
