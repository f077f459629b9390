"""The report: one HTML page of what became of the annotations, scores, curves and mistakes.

It imports common, compare, corpus and evaluate.
"""
