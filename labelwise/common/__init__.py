"""Tools that belong to no stage: errors, outputs, memory, engines, spans.

It imports no other folder of labelwise.
"""
