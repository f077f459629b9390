"""What finds entities: the recognizer with a head for each label, and spaCy's ner, computed faster; no other library.

It imports no other folder of labelwise.
"""
