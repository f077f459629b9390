"""Fuzzing of all that reads what others have written: brat, Prodigy's rows and databases, `.spacy`, declarations.

    python -m tests.fuzz

See `__main__` for what it runs and finds, `targets` for what must hold.
"""
