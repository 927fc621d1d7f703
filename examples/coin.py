"""The coin, and a ledger that refunds what was not leaked.

A classic accountant would allow eight coins of ε = 0.25 under a limit of 2. Tails publish nothing, so a ledger goes on
until the answers have used the limit up.
"""

import expost as xp

LIMIT, EACH = 2, 0.25
VISITS = 1_204  # the private count


def main() -> None:
    """Flip coins until the budget is gone, and print the statement."""
    ledger = xp.Ledger(epsilon=LIMIT, name="clinic", neighbours="add-remove", unit="patient")
    coin = xp.mechanisms.Coin(epsilon=EACH, sensitivity=1, neighbours="add-remove")

    runs = 0
    while ledger.quote([coin]).fits:
        release = ledger.run(coin, on=VISITS, label=f"visits, try {runs + 1}")
        print(release)
        runs += 1

    print(f"\n{ledger.statement()}\n")
    print(f"{runs} runs; a worst-case accountant would have allowed {int(LIMIT / EACH)}.")
    try:
        ledger.run(coin, on=VISITS)
    except xp.BudgetExceeded as refused:
        print(f"One more? {refused}.")


if __name__ == "__main__":
    main()
