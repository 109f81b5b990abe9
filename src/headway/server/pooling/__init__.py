"""The routes on which prompts are read instead of continued."""
