"""Faults: commands are killed, and have their writes fail; see `__main__`."""
