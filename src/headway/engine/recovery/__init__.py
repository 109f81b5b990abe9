"""What an engine does when one of its ranks fails: its requests end, and the model is loaded again."""
