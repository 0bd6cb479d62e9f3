"""A number and what it counts, in words."""


def counted(number: int, what: str) -> str:
    """As "4 sectors" and "1 sector".  what: a plural that ends in s."""
    return f"{number} {what if number != 1 else what.removesuffix('s')}"
