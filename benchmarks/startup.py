"""What `import expost` costs, against `import numpy`: whole interpreters, alternating, medians."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

from report import at_most, report

REPEATS = 21


def seconds(statement: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start


def main() -> None:
    bare, ours, first_use, numpy = [], [], [], []
    for _ in range(REPEATS):
        bare.append(seconds("pass"))
        ours.append(seconds("import expost"))
        first_use.append(seconds("import expost; expost.Ledger(epsilon=1)"))
        numpy.append(seconds("import numpy"))
    floor = median(bare)
    milliseconds = [(median(times) - floor) * 1e3 for times in (ours, first_use, numpy)]
    numpy_alone = milliseconds[2]
    report(
        "startup",
        [
            at_most(name, spent, numpy_alone, "ms", spent / numpy_alone, 1.5)
            for name, spent in (
                ("import expost, import numpy", milliseconds[0]),
                ("import expost and make a ledger, import numpy", milliseconds[1]),
            )
        ],
    )


if __name__ == "__main__":
    main()
