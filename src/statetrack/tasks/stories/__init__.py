"""The same machines, told as people tell them."""
