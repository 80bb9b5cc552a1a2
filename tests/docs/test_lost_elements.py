"""The how-to lists what the readers and writers lose."""

from docs import lost_elements


def test_the_page_has_the_tables_of_the_readers() -> None:
    assert lost_elements.PAGE.read_text(encoding="utf-8") == lost_elements.page()
