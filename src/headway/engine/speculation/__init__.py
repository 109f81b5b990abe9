"""Speculative decoding: cheap guesses at the next tokens, checked by the model in one forward pass. See `verification` for why
the answers stay the same."""
