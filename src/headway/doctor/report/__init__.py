"""A report for programs and for people."""
