"""Package a pipeline: an installable wheel, with a model card of the evaluation's numbers.

It imports corpus and evaluate.
"""
