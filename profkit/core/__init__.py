"""What every part builds on; it knows none of them."""
