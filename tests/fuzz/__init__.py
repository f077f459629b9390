"""Any bytes as sources: nothing is lost, and nothing but an error that says so comes out."""
