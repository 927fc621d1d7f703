"""Propose-test-release: answers with little or no noise where the data is stable."""
