"""Files as people have them: read as they were meant, or the merge stops and says why."""
