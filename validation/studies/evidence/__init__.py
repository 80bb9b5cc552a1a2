"""All figures of the documents, computed again from one commit."""
