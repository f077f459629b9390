"""Find annotations that contradict the others, and list what to fix first.

It imports common, corpus and train.
"""
