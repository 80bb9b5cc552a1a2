"""Models of public repositories, fetched at a pinned commit."""
