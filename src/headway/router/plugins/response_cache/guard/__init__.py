"""The guard on top of similarity: texts that look alike to a model of vectors and mean something else."""
