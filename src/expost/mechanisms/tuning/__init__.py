"""Private tuning: the best of several candidates by a private score, charged by the one that was chosen."""
