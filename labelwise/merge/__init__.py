"""The merge: any number of data sets, to one corpus of partitions, in bounded memory.

It imports merge.rules, common, corpus and sources.
"""
