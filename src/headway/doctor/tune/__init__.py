"""Tuning by measurement: one variable at a time, never a gain inside the noise."""
