"""Quantiles with pure ε: the exponential family of mechanisms on ranks, sampled exactly by permute-and-flip."""
