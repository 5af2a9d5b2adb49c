"""How things move: the loop that does what the store says is to be done."""
