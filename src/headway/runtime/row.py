"""What goes through a forward pass of a task model. Questions make rows as well, so they are defined beside those."""

from __future__ import annotations

from headway.decisions.row import ItemCode, ItemFailure, Outcome, Row

__all__ = ["ItemCode", "ItemFailure", "Outcome", "Row"]
