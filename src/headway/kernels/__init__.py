"""Kernels: one signature (`interface.Kernels`), several backends. `reference` is the definition of right."""
