"""What is tested: robots, their motions and their effort histories, as data. No physics."""
