"""The routes of ``/v1``."""
