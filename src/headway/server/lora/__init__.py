"""LoRA adapters over HTTP: the names that requests may ask for, and the routes that load and unload them."""
