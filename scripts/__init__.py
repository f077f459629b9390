"""Command lines: each parses, calls the package, prints, and exits."""
