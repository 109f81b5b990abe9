"""One compiled configuration."""
