"""Command lines: each parses, calls the package, prints, and exits."""

import labelwise  # noqa: F401  before numpy, which reads what it sets
