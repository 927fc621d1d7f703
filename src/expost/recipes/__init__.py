"""Several mechanisms and a ledger together."""

from expost.recipes.attempts import Attempts, try_until_one_passes
from expost.recipes.large_entries import LargeEntries, release_large
from expost.recipes.location import LocationAndSpread, RangeInTwo, interquartile_range_in_two, location_and_spread

__all__ = [
    "Attempts",
    "LargeEntries",
    "LocationAndSpread",
    "RangeInTwo",
    "interquartile_range_in_two",
    "location_and_spread",
    "release_large",
    "try_until_one_passes",
]
