"""The process of `vllm-sr serve`: its addresses, its start, its end."""
