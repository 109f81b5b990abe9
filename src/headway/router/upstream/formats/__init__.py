"""How requests and answers look at backends: each format to and from chat completions."""
