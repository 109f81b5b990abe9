"""Faults that are really caused: real processes, real logs, real probes; the doctor has to name each first."""
