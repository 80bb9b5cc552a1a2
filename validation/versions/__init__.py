"""The same model file in several releases of an engine: changes of its equations of motion, by release and term."""
