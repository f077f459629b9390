"""Faults: commands are killed."""
