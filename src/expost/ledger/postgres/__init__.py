"""Durable ledgers in PostgreSQL: its engine, connections, steps, and errors."""
