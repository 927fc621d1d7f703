"""ALGORITHMS: one file a family."""
