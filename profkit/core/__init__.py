"""The base of all other packages; it imports none of them."""
