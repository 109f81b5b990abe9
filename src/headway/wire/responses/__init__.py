"""OpenAI's Responses: input as chat messages, answers and their events."""
