"""Routes of this engine, one file each: the class whose `name` is `physx/<file>` is found by its place."""
