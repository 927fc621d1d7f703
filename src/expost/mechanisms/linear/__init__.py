"""Linear models: fitted, made private, tested before release."""
