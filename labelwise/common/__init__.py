"""Tools that belong to no stage: errors, outputs, memory, workers, spans.

It imports no other folder of labelwise.
"""
