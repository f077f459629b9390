"""Faults: commands are killed, and have their writes fail."""
