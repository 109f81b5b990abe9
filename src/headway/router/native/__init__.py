"""System One on the public address: bodies go to a deployment as they came, but for the name of the model."""
