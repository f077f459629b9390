"""The recognizer with a head for each label: layers, loss, decoding; spaCy, thinc and numpy only.

It imports no other folder of labelwise.
"""
