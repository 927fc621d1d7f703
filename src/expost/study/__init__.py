"""A declarative analysis: plan it, run it, report it."""
