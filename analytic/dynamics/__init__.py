"""What effort a motion takes: two models that share no dynamics, powers and energy, and accelerations from efforts."""
