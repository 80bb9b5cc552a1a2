"""Parts of a page that are made anew, between comments with their name."""


def with_part(text: str, name: str, made: str) -> str:
    """The text of a page with a part made anew.

    Args:
        name: As in `<!-- name -->` before the part and `<!-- end of name -->` after it.
    """
    before, rest = text.split(f"<!-- {name} -->\n")
    return f"{before}<!-- {name} -->\n{made.rstrip()}\n<!-- end of {name} -->{rest.split(f'<!-- end of {name} -->')[1]}"
