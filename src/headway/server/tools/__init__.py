"""Tools that a model may call: which ones a request offers, how it must or may call them, and how each model writes a call."""
