"""Decisions: three-valued rules over observations, and which decision wins."""
