"""Hand spans back to where people annotate: brat folders, Prodigy's JSONL.

It imports common, corpus and evaluate.
"""
