"""JSON that is printed as its rows come."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from expost.cli.tables import print_json_rows


@pytest.mark.parametrize("rows", [[], [1], [{"a": "x\ny", "b": [1, 2]}, {"a": "ε", "b": []}]])
@pytest.mark.parametrize("facts", [None, {"name": "study", "limit": {"epsilon": "1"}}])
def test_it_is_the_document_that_json_would_write(
    rows: list[Any], facts: dict[str, Any] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    print_json_rows(iter(rows), facts)
    whole = rows if facts is None else facts | {"rows": rows}
    assert capsys.readouterr().out == json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def test_rows_are_printed_before_the_next_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    """So that memory does not grow with their number."""
    shown: list[str] = []

    def rows() -> Iterator[str]:
        for row in ("first", "second"):
            yield row
            shown.append(capsys.readouterr().out)

    print_json_rows(rows())
    assert ["first" in text for text in shown] == [True, False]
