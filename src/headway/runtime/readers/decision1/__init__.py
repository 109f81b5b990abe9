"""Decision 1.0 packages: `qwen3.5-decision` on a decoder, `vela-encoder` on three stacks of one encoder."""
