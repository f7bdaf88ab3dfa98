"""What can be guessed without tracking the state."""
