"""LoRA adapters in the engine: which there are, which are in memory, which may run side by side."""
