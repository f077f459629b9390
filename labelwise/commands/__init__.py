"""Command lines: each parses, calls the package, prints, and exits.

It imports check, common, compare, corpus, demo, evaluate, export, merge, merge.rules, package, project,
report, sources and train.
"""
