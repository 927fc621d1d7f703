"""What a comparison with a threshold found: above, below, or nothing, because it was never made."""

from __future__ import annotations

from enum import StrEnum


class Comparison(StrEnum):
    """What a sparse vector says of one value. As a truth value: whether it was found above.

    ``NOT_COMPARED`` is for all that comes after the last positive allowed: nothing is known of it. Each is a text, too:
    ``Comparison.ABOVE == "above"``.
    """

    ABOVE = "above"
    FAR_ABOVE = "far above"
    BELOW = "below"
    NOT_COMPARED = "not compared"

    def __bool__(self) -> bool:
        return self in (Comparison.ABOVE, Comparison.FAR_ABOVE)

    def __repr__(self) -> str:
        return self.name
