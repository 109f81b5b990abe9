"""Collectors: what is true here now, as parts of a context. Each reads, none changes anything."""
