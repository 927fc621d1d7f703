"""A service: analysts ask, data stays, a dashboard shows the budget."""
