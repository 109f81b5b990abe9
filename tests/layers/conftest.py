"""Fixtures of this folder."""

from tests.kernels.one_thread import one_thread

__all__ = ["one_thread"]
