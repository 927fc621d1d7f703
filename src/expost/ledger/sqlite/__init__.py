"""Durable ledgers in an SQLite file: its engine, one transaction, and watching the file itself."""
