"""Routes of this engine, one file each: the class whose `name` is `genesis/<file>` is found by its place."""
