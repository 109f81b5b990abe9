"""Events of the KV cache for others: which prefixes this engine holds, over ZeroMQ, in vLLM's wire format."""
