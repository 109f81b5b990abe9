"""Documents in pieces, found by the likeness of their vectors."""
