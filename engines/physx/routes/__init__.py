"""Routes of this engine, one file each: the class with the `name` `physx/<file>` is found by its place."""
