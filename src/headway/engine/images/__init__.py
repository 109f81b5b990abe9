"""Images in prompts: read and cut into tiles, placed among the tokens, encoded when a step needs them."""
