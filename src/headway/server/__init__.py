"""The HTTP application of the engine: OpenAI-compatible routes, streaming, auth, limits, and the process around them."""
