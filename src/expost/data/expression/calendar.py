"""The meaning of operators on dates and timestamps. Both lie in the years 1 to 9999; results outside are NULL."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, datetime, timedelta

FIRST, LAST = date(1, 1, 1), date(9999, 12, 31)
EARLIEST, LATEST = datetime(1, 1, 1), datetime.max
_EPOCH = date(1970, 1, 1).toordinal()
FIRST_DAY, LAST_DAY = FIRST.toordinal() - _EPOCH, LAST.toordinal() - _EPOCH
"""The first and the last day, counted from 1970."""
FIRST_MONTH, LAST_MONTH = 12, 119_999
"""The first and the last month, counted from the year 0."""
SECONDS_PER_UNIT = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_DAY = SECONDS_PER_UNIT["day"] * 10**6
FIRST_INSTANT, LAST_INSTANT = FIRST_DAY * _DAY, (LAST_DAY + 1) * _DAY - 1
"""The first and the last instant, in microseconds from 1970."""
DATE = r"(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}"
TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
"""Regular expressions for dates and times of day, which mean the same in RE2 and Python."""


def as_date(text: str) -> date | None:
    """A date from text such as 2024-01-31; None if it is not one."""
    if not re.fullmatch(rf" *{DATE} *", text):
        return None
    try:
        return date.fromisoformat(text.strip(" "))
    except ValueError:
        return None


def as_timestamp(text: str) -> datetime | None:
    """A timestamp from text such as 2024-01-31 18:30:05.25, with less of the time or none; None if it is not one."""
    found = re.fullmatch(rf" *({DATE})([ T]({TIME}))? *", text)
    if found is None:
        return None
    day = as_date(found[1])
    if day is None or found[3] is None:
        return None if day is None else midnight(day)
    hours, minutes, seconds = f"{found[3]}:00".split(":")[:3]
    whole, _, part = seconds.partition(".")
    return midnight(day).replace(
        hour=int(hours), minute=int(minutes), second=int(whole), microsecond=int(part.ljust(6, "0"))
    )


def midnight(day: date) -> datetime:
    """The first instant of a day."""
    return datetime(day.year, day.month, day.day)


def add_days(day: date, days: int) -> date | None:
    """The date a number of days later; None outside the years 1 to 9999."""
    place = day.toordinal() + days
    return date.fromordinal(place) if 1 <= place <= LAST.toordinal() else None


def add_months(day: date, months: int) -> date | None:
    """The date a number of months later, on the same day of the month, or on its last day."""
    place = day.year * 12 + day.month - 1 + months
    if not FIRST_MONTH <= place <= LAST_MONTH:
        return None
    year, month = place // 12, place % 12 + 1
    return day.replace(year=year, month=month, day=min(day.day, monthrange(year, month)[1]))


def add_seconds(time: datetime, seconds: int) -> datetime | None:
    """The time a number of seconds later; None outside the years 1 to 9999."""
    passed = (time - EARLIEST) // timedelta(microseconds=1) + seconds * 10**6
    whole = (LATEST - EARLIEST) // timedelta(microseconds=1)
    return EARLIEST + timedelta(microseconds=passed) if 0 <= passed <= whole else None


PARTS: dict[str, Callable[[date], int]] = {
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "week": lambda day: day.isocalendar().week,
    "day": lambda day: day.day,
    "dayofweek": lambda day: day.isoweekday() % 7,
    "isodow": lambda day: day.isoweekday(),
    "dayofyear": lambda day: day.timetuple().tm_yday,
}
"""Parts of a date. Weeks are those of ISO 8601; dayofweek is 0 on Sunday, and isodow is 1 on Monday."""
PARTS_OF_TIME: dict[str, Callable[[datetime], int]] = {
    "hour": lambda time: time.hour,
    "minute": lambda time: time.minute,
    "second": lambda time: time.second,
}
"""Parts of a timestamp."""


def truncated(unit: str, day: date) -> date:
    """The first day of the year, quarter, month or week."""
    if unit == "week":
        return date.fromordinal(day.toordinal() - day.weekday())
    if unit == "day":
        return date(day.year, day.month, day.day)
    month = {"year": 1, "quarter": (day.month - 1) // 3 * 3 + 1, "month": day.month}[unit]
    return date(day.year, month, 1)


def truncated_time(unit: str, time: datetime) -> datetime:
    """The first instant of the unit."""
    if unit in ("hour", "minute", "second"):
        kept = {"hour": 1, "minute": 2, "second": 3}[unit]
        return midnight(time) + timedelta(
            **dict(list({"hours": time.hour, "minutes": time.minute, "seconds": time.second}.items())[:kept])
        )
    return midnight(truncated(unit, time))


def difference(unit: str, first: datetime, last: datetime) -> int:
    """How often the unit begins between two times: one year begins between 31 December, 23:00, and 1 January, 1:00."""
    if unit in ("year", "quarter", "month"):
        months = 12 * (last.year - first.year) + last.month - first.month
        if unit == "quarter":
            return 4 * (last.year - first.year) + (last.month - 1) // 3 - (first.month - 1) // 3
        return months if unit == "month" else last.year - first.year
    length = timedelta(seconds=SECONDS_PER_UNIT[unit])
    return (truncated_time(unit, last) - truncated_time(unit, first)) // length
