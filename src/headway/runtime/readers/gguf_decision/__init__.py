"""GGUF files with `<architecture>.decision.*` metadata: the prompt is a template in the file, the readout one of a few kinds."""
