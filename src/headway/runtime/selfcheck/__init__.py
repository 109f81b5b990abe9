"""What a model must show before it serves: the same answers twice, the recorded ones, and the same in company."""
