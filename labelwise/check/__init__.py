"""Find annotations that contradict the others, most certain first.

It imports corpus and train.
"""
