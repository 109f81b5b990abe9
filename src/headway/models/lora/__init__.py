"""LoRA adapters of native models: which matrices can have one, reading their folders, and the forward pass that applies them."""
