"""Forward dynamics against published free motions."""
