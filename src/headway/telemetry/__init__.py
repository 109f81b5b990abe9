"""Metrics, logging with redaction, and the lines that people grep for."""
