"""How good a model is, and whether another one is still as good: perplexity, divergence, and questions with answers to choose from."""
