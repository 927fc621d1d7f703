"""MONEY: who may spend how much, and what was spent."""
