"""What every command is made of: options, computation, output, exit status."""
