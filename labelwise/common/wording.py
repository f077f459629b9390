"""How counts are put into words."""


def counted(count: int, noun: str) -> str:
    """Write a number with what it counts.

    >>> counted(1, "text"), counted(2000, "text")
    ('1 text', '2,000 texts')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
