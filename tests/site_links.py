"""Dead links of a built site, and resources from other hosts: `python -m tests.site_links DIR`."""

import re
import sys
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

LINK = re.compile(r"<(\w+)\b[^>]*?\s(href|src)=\"([^\"]*)\"[^>]*>")
ANCHOR = re.compile(r"\b(?:id|name)=\"([^\"]*)\"")
FROM_STYLE = re.compile(r"(?:url\(|@import\s+)[\"']?(https?:[^\"')]*)")
ABSTRACT = ("data:", "mailto:", "javascript:")


def broken_links(site: Path) -> Iterator[str]:
    """Links within a site that lead to no file or to no place in it.

    Args:
        site: Its folder.
    """
    for page in sorted(site.rglob("*.html")):
        for _, _, link in set(LINK.findall(page.read_text(encoding="utf-8"))):
            parts = urlsplit(unescape(link))
            if parts.scheme or parts.netloc or link.startswith(ABSTRACT):
                continue
            goal = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not goal.is_file() or (parts.fragment and unquote(parts.fragment) not in _anchors(goal)):
                yield f"{page.relative_to(site)}: {link}"


def foreign_resources(site: Path) -> Iterator[str]:
    """Resources that pages and styles of a site would load from other hosts; links for readers do not count.

    Args:
        site: Its folder.
    """
    for page in sorted(site.rglob("*.html")):
        for tag, kind, link in set(LINK.findall(page.read_text(encoding="utf-8"))):
            if (kind == "src" or tag == "link") and urlsplit(link).netloc:
                yield f"{page.relative_to(site)}: {link}"
    for style in sorted(site.rglob("*.css")):
        yield from (f"{style.relative_to(site)}: {link}" for link in FROM_STYLE.findall(style.read_text("utf-8")))


@cache
def _anchors(page: Path) -> frozenset[str]:
    """Places in a page that links can lead to; all of a file that is no page."""
    text = page.read_text(encoding="utf-8") if page.suffix == ".html" else ""
    return frozenset({"", "top", *map(unescape, ANCHOR.findall(text))})


def main() -> int:
    """Name the faults of the site in the folder of the command line; its weight if there are none."""
    site = Path(sys.argv[1])
    faults = [*broken_links(site), *foreign_resources(site)]
    sizes = {page: page.stat().st_size for page in site.rglob("*") if page.is_file() and ".doctrees" not in page.parts}
    pages = [page for page in sizes if page.suffix == ".html"]
    print(*faults, sep="\n" if faults else "")  # noqa: T201
    print(f"{len(pages)} pages, {sum(sizes.values()) / 1e6:.1f} MB")  # noqa: T201
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
