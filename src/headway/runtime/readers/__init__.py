"""Decision readers: one package for each layout in which decision models are published."""
