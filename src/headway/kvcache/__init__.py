"""Which block of the KV cache belongs to whom. Bookkeeping, but for the inputs of a pass (`runs`) and copies of blocks (`offload`)."""
