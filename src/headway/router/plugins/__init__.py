"""What a decision does to its requests and answers."""
