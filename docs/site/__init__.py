"""The atlas and the gallery of the catalogue as pages, files for machines and badges, from tables of results alone."""
