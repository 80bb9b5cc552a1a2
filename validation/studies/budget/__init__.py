"""What the error of simulations as they are is made of."""
