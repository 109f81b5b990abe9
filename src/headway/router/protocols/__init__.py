"""Client protocols, each as chat completions and back."""
