"""compressed-tensors: one container for several packings, chosen for groups of modules."""
