"""`headway quantize`: a dense checkpoint -> a compressed-tensors checkpoint that this and other engines read."""
