"""Several mechanisms and a ledger together."""

from expost.recipes.large_entries import LargeEntries, release_large
from expost.recipes.location import LocationAndSpread, RangeInTwo, interquartile_range_in_two, location_and_spread

__all__ = [
    "LargeEntries",
    "LocationAndSpread",
    "RangeInTwo",
    "interquartile_range_in_two",
    "location_and_spread",
    "release_large",
]
