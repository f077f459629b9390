"""Find annotations that contradict the others, and list what to fix first.

It imports corpus and train.
"""
