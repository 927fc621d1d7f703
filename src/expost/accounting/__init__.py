"""ARITHMETIC on facts: filters, odometers, composition. Pure functions, certified bounds."""
