"""How good one model is where each text is annotated for some labels only; see `__main__`."""
