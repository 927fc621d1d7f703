"""Means and variances within loose bounds: an interval that holds nearly all records is chosen first."""
