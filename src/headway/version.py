"""The version of Headway; apart from the package itself, so that any layer may ask."""

__version__ = "0.1.0"
