"""The atlas and the gallery of the catalogue as pages, from tables of results alone."""
