"""Several devices on several nodes: what the ways to split a model over them reach, from measured or published numbers."""
