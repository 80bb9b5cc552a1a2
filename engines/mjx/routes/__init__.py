"""Routes of this engine, one file each: the class whose `name` is `mjx/<file>` is found by its place."""
