"""EVIDENCE: exact checks of finite mechanisms."""
