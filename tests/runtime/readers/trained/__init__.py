"""Readouts with heads that are trained here, on features of small published models."""
