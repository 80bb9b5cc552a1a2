"""What a log says against the equations of the closed loop: residual efforts, their floor, and what can be fitted."""
