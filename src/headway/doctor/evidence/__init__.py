"""What is at hand, as it is: lines of logs and the facts of a context file, each with the place it came from."""
