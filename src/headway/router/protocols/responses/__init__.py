"""OpenAI's Responses, translated to chat completions and back, with a store of their own."""
