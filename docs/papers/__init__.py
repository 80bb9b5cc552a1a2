"""The page of the papers: every item of the five papers, and what we found."""
