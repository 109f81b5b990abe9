"""Bodies and answers of the routes on which an engine reads prompts."""
