"""Any bytes as sources: nothing is lost without an error that names it."""
