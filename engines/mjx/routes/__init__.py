"""Routes of this engine, one file each: the class with the `name` `mjx/<file>` is found by its place."""
