"""Text for programs that read little: pages of less than 8,000 bytes, cut between lines."""

COLUMNS = 100  # of its lines, chosen as for a terminal
LARGEST = 7_900
"""Bytes of a page: 2,000 tokens of 4 bytes, the usual estimate for English, less a line."""


def pages(text: str, largest: int = LARGEST) -> list[str]:
    """The pages of a text; a line that is longer than a page is cut."""
    parts: list[list[str]] = []
    size = largest
    for line in text.splitlines(keepends=True):
        row = line.encode()[:largest].decode("utf-8", "ignore")
        length = len(row.encode())
        if size + length > largest:
            parts.append([])
            size = 0
        parts[-1].append(row)
        size += length
    return ["".join(part) for part in parts]


def first_page(text: str) -> str:
    """The first page, which says where there is more."""
    parts = pages(text, LARGEST - 100)
    if len(parts) < 2:
        return text
    left = sum(part.count("\n") for part in parts[1:])
    return f"{parts[0]}... {left} more lines: --format terminal\n"
