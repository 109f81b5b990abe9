"""Fixtures shared by the tests of this folder."""

from __future__ import annotations

from tests.artifacts.hub_fixtures import files, hub_environment, no_connections, served, waits

__all__ = ["files", "hub_environment", "no_connections", "served", "waits"]
