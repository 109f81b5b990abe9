"""Prefill and decoding in different engines: the KV blocks of a prompt move from one to the other over TCP."""
