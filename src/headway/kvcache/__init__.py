"""Which block of the KV cache belongs to whom. Pure bookkeeping: no tensors here."""
