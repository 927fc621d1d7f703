"""The figures and tables of the paper, recomputed."""
