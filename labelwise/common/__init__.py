"""Tools that belong to no stage: errors, files, memory, parallel jobs, spans.

It imports no other folder of labelwise.
"""
