"""Arithmetic on a card and a host: weight and KV bytes, what fits, what a decode step reads."""
