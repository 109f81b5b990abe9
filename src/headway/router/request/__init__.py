"""What the router knows about one request."""
