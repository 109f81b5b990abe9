"""Any other causal LM that transformers knows: its own model, with our paged attention in it."""
