"""Noise reduction: answers with less and less noise, and rules when to stop."""
