"""What a serial stand-in of a closed mechanism loses, and what repairs it."""
