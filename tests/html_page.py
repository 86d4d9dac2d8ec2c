"""What stands in an HTML page."""

from html.parser import HTMLParser


class HtmlPage(HTMLParser):
    """The tags of a page with their attributes, in order, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def names(self) -> list[str]:
        """Of its tags."""
        return [name for name, _ in self.tags]
