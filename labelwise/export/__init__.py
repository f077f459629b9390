"""Let a pipeline predict raw texts, and hand spans back to where people annotate: brat folders, Prodigy's JSONL.

It imports common, corpus, evaluate and sources.
"""
