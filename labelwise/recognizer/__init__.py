"""The recognizer with a head for each label, as a spaCy component that a wheel can carry, and its transformer.

It imports common.
"""
