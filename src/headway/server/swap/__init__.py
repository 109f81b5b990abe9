"""Another model behind the same names, without a refused request."""
