"""How counts are put into words."""


def counted(count: int, noun: str, nouns: str = "") -> str:
    """Write a number with what it counts.

    nouns (str): the plural, if it isn't just an s more.

    >>> counted(1, "text"), counted(2000, "text"), counted(2, "row or span", "rows or spans")
    ('1 text', '2,000 texts', '2 rows or spans')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {nouns or noun + 's'}"
