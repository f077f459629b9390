"""The student: a fast pipeline's corpus, of gold and of what a slow pipeline predicts for raw texts.

It imports annotations, corpus, datasets, evaluate, merge and merge.rules.
"""
