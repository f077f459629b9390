"""Files as people have them: each is read as it was meant, or the merge stops, and says why."""
