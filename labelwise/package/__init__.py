"""A pipeline to hand out: an installable wheel, with a model card whose numbers are those of the evaluation.

It imports corpus and evaluate.
"""
