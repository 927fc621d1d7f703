"""Writes the data of the demonstration: the RAND Health Insurance Experiment, 20,190 person-years, as Parquet.

The data is part of the statsmodels package. It has no number for a person, so the unit of the study is the person-year.
"""

import sys
from pathlib import Path

import duckdb
from statsmodels.datasets import randhie


def main(folder: Path) -> None:
    """Write ``randhie.parquet`` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    table = randhie.load_pandas().data
    target = folder / "randhie.parquet"
    with duckdb.connect() as database:
        database.register("source", table)
        database.execute(f"COPY source TO '{target}' (FORMAT parquet)")
    print(f"{target}: {len(table):,} person-years, {len(table.columns)} columns")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo"))
