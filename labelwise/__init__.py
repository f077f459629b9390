"""One named-entity model from annotations made label by label: a folder for each stage, which says what it imports.

Data goes through sources, merge, corpus, train, evaluate; then compare and report.
"""
