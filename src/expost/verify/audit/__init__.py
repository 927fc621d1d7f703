"""Try to refute privacy guarantees by samples: :func:`audit`."""

from expost.verify.audit.audit import audit
from expost.verify.audit.result import AuditResult, EventShown, PartShown

__all__ = ["AuditResult", "EventShown", "PartShown", "audit"]
