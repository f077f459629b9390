"""Tools that belong to no stage: errors, outputs, memory, parallel jobs, spans.

It imports no other folder of labelwise.
"""
