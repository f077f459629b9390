"""Checks and measurements of a GPU machine without a network; see README.md."""
