"""`.sparrow` packages: static word vectors and a small MLP, in numpy, answers in well under a millisecond."""
