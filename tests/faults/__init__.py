"""Faults: commands are killed, run twice at once, and have their writes fail; see `__main__`."""
