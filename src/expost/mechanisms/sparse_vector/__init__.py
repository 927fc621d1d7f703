"""Sparse vector (above threshold): many comparisons, of which only the positive ones cost much."""
