"""GGUF block types: one file each, and one table from the type's name to the function that unpacks it."""
