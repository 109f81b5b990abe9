"""Structured output: answers that fit a schema, an expression, a grammar or a list of choices."""
