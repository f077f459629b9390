"""Tools that know no stage: errors, outputs, memory, workers, spans.

It imports no other folder of labelwise.
"""
