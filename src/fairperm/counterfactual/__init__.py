"""What a decision depends on: the same inputs with another value of an attribute."""
