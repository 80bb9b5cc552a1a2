"""A closed mechanism seen at the joints that a serial stand-in of it has."""
