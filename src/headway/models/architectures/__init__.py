"""One module per architecture: how its config is read, and where its tensors go. No code of its own runs."""
