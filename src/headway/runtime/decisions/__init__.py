"""Families of models that answer questions without a package of their own; how questions are planned is in `headway.decisions`."""
