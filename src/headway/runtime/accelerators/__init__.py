"""Accelerators that come with Headway."""
