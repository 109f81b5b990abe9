"""Shapes at which kernels are measured, one file for each family."""
