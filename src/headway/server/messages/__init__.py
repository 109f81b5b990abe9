"""`/v1/messages`: the Messages API of Anthropic, and its counting of tokens."""
