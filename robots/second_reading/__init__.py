"""A second reading of model files by plain XML; it shares no code with the reader of the reference."""
