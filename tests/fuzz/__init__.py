"""Fuzzing of all that reads what others have written: brat, Prodigy, `.spacy`, CoNLL and others, declarations.

    python -m tests.fuzz
    python -m tests.fuzz.blind --runs 2000

The second needs no fuzzer. See `__main__` for what it runs and finds, `targets` for what must hold.
"""
