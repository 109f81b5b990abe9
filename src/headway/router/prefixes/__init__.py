"""Prefix-aware placement: which backend holds the beginning of a prompt, learned from the events of its KV cache."""
