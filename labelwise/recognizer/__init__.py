"""The recognizer with a head for each label, as a spaCy component that a wheel can carry, and its reliability.

It imports common.
"""
