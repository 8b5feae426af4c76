"""Audits: worst-case neighbours made for a plan, and what runs on both prove about its epsilon."""

from dpframe.audit.audit import Audit, audit

__all__ = ["Audit", "audit"]
