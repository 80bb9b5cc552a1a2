"""Routes of this engine, one file each: the class whose `name` is `newton/<file>` is found by its place."""
