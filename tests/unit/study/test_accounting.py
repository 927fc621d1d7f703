"""Studies whose ledger counts on several meters: what fits, what it costs, and which accounting a plan recommends."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from commands import CliRunner
from expost import BudgetExceeded, Cost, Gaussian, Ledger
from expost.accounting.renyi import tangent_prices
from expost.cli.main import app
from expost.errors import InvalidStudy
from expost.guarantee import Guarantee
from expost.study import plan_study, read_study, record_of, report_html, run_study
from expost.study.kinds.kind import Accuracy
from expost.study.model import Study
from expost.study.run import Result
from studies import ABOVE, question, write_study

pytestmark = pytest.mark.slow
BANDS = question("bands", "histogram", column="age", bins=8, bounds=[0, 80], epsilon=0.05)


def write_metered(folder: Path, *questions: str, accounting: str = "renyi", epsilon: str = "1") -> Path:
    path = write_study(folder, *questions)
    text = path.read_text().replace("epsilon = 4", f"epsilon = {epsilon}", 1)
    path.write_text(text.replace('name = "people"', f'name = "people"\naccounting = "{accounting}"', 1))
    return path


def metered(folder: Path, *questions: str, **settings: str) -> Study:
    return read_study(write_metered(folder, *questions, **settings))


def counts(times: int, epsilon: float) -> list[str]:
    return [question(f"q{age}", "count", where=f"age > {age}", epsilon=epsilon) for age in range(times)]


def renyi_price(result: Result, place: int) -> int:
    amounts = result.outcomes[place].receipts[0].amounts
    assert amounts is not None
    return amounts.renyi


def test_more_small_questions_fit_than_in_the_basic_sum(tmp_path: Path) -> None:
    many = counts(60, 0.02)
    (tmp_path / "basic").mkdir()
    assert not plan_study(metered(tmp_path / "basic", *many, accounting="basic")).fits
    plan = plan_study(metered(tmp_path, *many))
    assert plan.fits
    assert [line.fit for line in plan.lines] == ["fits"] * 60
    result = run_study(plan.study)
    assert result.answered == result.classic == 60
    assert result.ledger.spent == Cost("0.70055377128", "1e-5")
    assert run_study(plan.study).ledger.spent == Cost("0.70055377128", "1e-5")  # stored


def test_a_plan_says_which_accounting_fits_more(tmp_path: Path) -> None:
    path = write_metered(tmp_path, *counts(20, 0.02), question("all", "count", where="age > 9", epsilon="rest"))
    plan = plan_study(read_study(path))
    basic, renyi = plan.takes["basic"], plan.takes["renyi"]
    assert basic.worst == pytest.approx(0.4)
    assert basic.worst / renyi.worst > 2
    assert plan.which_fits_more == "", "nobody need hear of what takes more"
    path.write_text(path.read_text().replace('accounting = "renyi"\n', ""))
    assert plan_study(read_study(path)).which_fits_more == (
        f'with accounting = "renyi" in [ledger], questions with a stated ε would take {100 * renyi.worst:.3g} % of the '
        "limit at worst, and not 40 %: state that before the first run"
    )
    run_study(read_study(path))
    assert plan_study(read_study(path)).which_fits_more == ""  # it is made, and stays as it is


def test_a_few_large_questions_fit_as_much_either_way(tmp_path: Path) -> None:
    plan = plan_study(metered(tmp_path, *counts(2, 0.5)))
    assert plan.fits
    assert plan.which_fits_more == ""


def test_questions_with_a_delta_of_their_own_have_a_quarter_of_it(tmp_path: Path) -> None:
    asked = question("words", "discover", column="city", epsilon=0.1, delta=2e-6)
    plan = plan_study(metered(tmp_path, asked))
    assert plan.before.delta_units == 25 * 10**11
    assert plan.takes["renyi"].worst == pytest.approx(0.8)
    assert plan.which_fits_more == (
        'with accounting = "basic" in [ledger], questions with a stated ε would take 20 % of the limit at worst, and '
        "not 80 %: state that before the first run"
    )


@pytest.mark.parametrize("accounting", ["basic", "renyi"])
def test_a_limit_without_delta_gives_no_choice(tmp_path: Path, accounting: str) -> None:
    path = write_metered(tmp_path, BANDS, accounting=accounting)
    path.write_text(path.read_text().replace("delta = 1e-5\n", "", 1))
    if accounting == "basic":
        assert plan_study(read_study(path)).which_fits_more == ""
        return
    with pytest.raises(InvalidStudy, match=r"Rényi accounting needs a δ: state 'delta' in \[limit\]"):
        read_study(path)


def test_a_limit_that_is_too_small_for_any_order_says_which_delta_would_do(tmp_path: Path) -> None:
    path = write_metered(tmp_path, BANDS, epsilon="1e-6")
    path.write_text(path.read_text().replace("delta = 1e-5", "delta = 1e-9", 1))
    study = read_study(path)
    for step in (plan_study, run_study):
        with pytest.raises(InvalidStudy, match=r"no room for Rényi prices at any order: a δ of \S+ would do"):
            step(study)
    assert not (tmp_path / "books.db").exists()


@pytest.mark.parametrize(("made", "stated"), [("basic", "renyi"), ("renyi", "basic")])
def test_the_accounting_of_a_ledger_stays(tmp_path: Path, made: str, stated: str) -> None:
    path = write_metered(tmp_path, BANDS, accounting=made)
    run_study(read_study(path))
    path.write_text(path.read_text().replace(f'accounting = "{made}"', f'accounting = "{stated}"'))
    for step in (plan_study, run_study):
        with pytest.raises(InvalidStudy, match=f"was made with accounting '{made}', and the study says '{stated}'"):
            step(read_study(path))
    path.write_text(path.read_text().replace(f'accounting = "{stated}"\n', ""))
    assert run_study(read_study(path)).outcomes[0].receipts[0].stored


# ---- Gaussian noise


def test_normal_noise_without_a_delta_costs_what_its_epsilon_costs(tmp_path: Path) -> None:
    normal = BANDS.replace('"bands"', '"normal"') + 'noise = "gaussian"\n'
    result = run_study(metered(tmp_path, BANDS, normal))
    laplace, gaussian = (outcome.answer for outcome in result.outcomes)
    assert laplace is not None
    assert gaussian is not None
    assert gaussian.error < laplace.error  # type: ignore[operator]
    order = result.ledger._store.meters.order  # type: ignore[union-attr]
    price = tangent_prices(Guarantee.uniform("0.05"), order).worst
    assert 0.999 * price < renyi_price(result, 1) <= price
    assert result.outcomes[1].receipts[0].charged == Cost(0)
    assert result.outcomes[1].how["charged"].startswith("ρ 0.001")
    again = run_study(result.study)
    assert again.outcomes[1].answer == gaussian


@pytest.mark.parametrize(("amount", "chosen"), [("epsilon = 0.05", "Gaussian"), ("epsilon = 2.5", "Laplace")])
def test_the_best_noise_is_the_one_that_moves_the_answer_less(tmp_path: Path, amount: str, chosen: str) -> None:
    """With little ε a normal number is nearer to 0 than a Laplace number of the same Rényi price."""
    study = metered(tmp_path, BANDS.replace("epsilon = 0.05", amount) + 'noise = "best"\n', epsilon="3")
    result = run_study(study)
    assert result.outcomes[0].how["noise"].startswith(chosen)
    assert run_study(study).outcomes[0].answer == result.outcomes[0].answer


def test_the_best_noise_of_a_basic_ledger_needs_a_delta(tmp_path: Path) -> None:
    with pytest.raises(InvalidStudy, match="'delta' is missing"):
        metered(tmp_path, BANDS + 'noise = "best"\n', accounting="basic")
    study = metered(tmp_path, BANDS + 'noise = "best"\ndelta = 1e-6\n', accounting="basic")
    result = run_study(study)
    assert result.ledger.spent == Cost("0.05")  # nobody is in many cells: Laplace noise, without δ
    assert run_study(study).outcomes[0].answer == result.outcomes[0].answer


def test_normal_noise_is_cheaper_where_a_person_is_in_many_cells(tmp_path: Path) -> None:
    path = write_metered(tmp_path, BANDS, BANDS.replace('"bands"', '"best"') + 'noise = "best"\n')
    text = path.read_text().replace('unit = "row"\nwho = "visitor"', 'unit = "person"\nrows = 8\ngroups = 8')
    path.write_text(text)
    laplace, best = (line.accuracy for line in plan_study(read_study(path)).lines)
    assert isinstance(laplace, Accuracy)
    assert isinstance(best, Accuracy)
    assert best.error < laplace.error / 2


SUMS: dict[str, dict[str, Any]] = {
    "count": {"where": "age > 1"},
    "sum": {"column": "age", "bounds": [0, 80]},
    "mean": {"column": "age", "bounds": [0, 80]},
    "variance": {"column": "age", "bounds": [0, 80]},
    "ratio": {"columns": ["cost", "age"], "bounds": [[0, 200], [0, 80]]},
    "covariance": {"columns": ["cost", "age"], "bounds": [[0, 200], [0, 80]]},
    "correlation": {"columns": ["cost", "age"], "bounds": [[0, 200], [0, 80]]},
    "regression": {"features": ["age"], "target": "cost", "bounds": [0, 80], "target_bounds": [0, 200]},
}


@pytest.mark.parametrize("by", [{}, {"by": "city", "by_keys": ["Rome", "Oslo"]}])
@pytest.mark.parametrize("kind", SUMS)
def test_sums_are_asked_with_normal_noise(tmp_path: Path, kind: str, by: dict[str, Any]) -> None:
    """With a δ in any ledger, without one where Rényi prices are counted; and a stored answer is found again."""
    asked = question("n", kind, **SUMS[kind], **by, noise="gaussian", epsilon=0.5)
    basic = metered(tmp_path, asked + "delta = 1e-7\n", accounting="basic")
    result = run_study(basic)
    assert result.error is None
    assert result.ledger.spent == Cost("0.5", "1e-7")
    (outcome,) = result.outcomes
    assert outcome.how["noise"].startswith("Gaussian")
    (again,) = run_study(basic).outcomes
    assert again.answer == outcome.answer
    (tmp_path / "renyi").mkdir()
    (priced,) = run_study(metered(tmp_path / "renyi", asked)).outcomes
    assert priced.state == "answered"
    assert priced.how["noise"] == outcome.how["noise"]


def test_where_a_range_or_groups_are_found_noise_is_laplace(tmp_path: Path) -> None:
    own: dict[str, Any] = {"epsilon": 0.1, "noise": "gaussian"}
    with pytest.raises(InvalidStudy, match="groups that are found have Laplace noise: state 'by_keys'"):
        plan_study(metered(tmp_path, question("n", "count", by="city", **own)))
    with pytest.raises(InvalidStudy, match="where a range is found first noise is Laplace: state 'bounds'"):
        plan_study(metered(tmp_path, question("n", "mean", column="age", **own)))


def test_an_account_with_the_basic_sum_alone_needs_a_delta_for_normal_noise(tmp_path: Path) -> None:
    url, unit = f"sqlite:///{tmp_path}/books.db", "visitor (one row each)"
    ledger = Ledger.create(url, "people", epsilon=1, delta=1e-5, neighbours="substitute", unit=unit, accounting="renyi")
    ledger.create_account("small", Cost("0.1", "1e-5"))
    asked = BANDS + 'noise = "gaussian"\n'
    path = write_metered(tmp_path, asked, epsilon="0.1")
    path.write_text(path.read_text().replace('name = "people"', 'name = "people"\naccount = "small"', 1))
    with pytest.raises(InvalidStudy, match="the basic sum is the only meter: leave 'noise' out, or state 'delta'"):
        plan_study(read_study(path))
    path.write_text(path.read_text() + "delta = 1e-6\n")
    result = run_study(read_study(path))
    assert result.ledger.spent == Cost("0.05", "1e-6")


# ---- amounts of what remains, repetitions, and questions with two steps


def test_what_remains_is_asked_for_although_parts_differ_in_cost(tmp_path: Path) -> None:
    """A sparse vector's worst part costs more than one answer of the same ε: it gets the most that has room."""
    few = counts(24, 0.05)
    remaining = plan_study(metered(tmp_path, *few)).worst.epsilon
    study = metered(tmp_path, *few, ABOVE.format(threshold=9000, amount='epsilon = "rest"'))
    worst = plan_study(study).lines[-1].worst
    assert worst is not None
    assert 0.7 * remaining < worst.epsilon < remaining
    assert run_study(study).outcomes[-1].receipts[0].reserved == worst


def test_a_question_of_two_steps_has_room_for_both_before_the_first(tmp_path: Path) -> None:
    large = question("large", "large", column="age", bins=8, bounds=[0, 80], threshold=9, at_most=8, epsilon=0.3)
    study = metered(tmp_path, *counts(55, 0.02), large)
    with pytest.raises(InvalidStudy, match=r"cannot fit: it reserves ε 0\.3"):
        run_study(study)
    fits = metered(tmp_path, *counts(30, 0.02), large)
    result = run_study(fits)
    assert result.answered == 31
    assert [receipt.what for receipt in result.outcomes[-1].receipts] == ["large", "large: values"]


def test_a_repeated_question_stops_where_the_budget_ends(tmp_path: Path) -> None:
    amount = 'epsilon = 0.4\nrepeat = { until = "none", floor = 0.01, at_most = 9 }'
    result = run_study(metered(tmp_path, ABOVE.format(threshold=70, amount=amount)))
    assert 2 <= len(result.outcomes[0].receipts) < 9
    assert result.error is None


def test_what_another_run_spends_meanwhile_is_refused(tmp_path: Path) -> None:
    study = metered(tmp_path, *counts(2, 0.4))

    def spend(asked: object, outcome: object) -> None:
        if outcome is not None:
            ledger = Ledger.load(study.ledger_url, "people")
            ledger.reserve(Guarantee.uniform(ledger.remaining.exact_epsilon)).settle("released")

    result = run_study(study, progress=spend)
    assert isinstance(result.error, BudgetExceeded)
    assert [outcome.state for outcome in result.outcomes] == ["answered", "not possible"]


# ---- records and reports


def test_records_and_reports_show_all_meters(tmp_path: Path) -> None:
    result = run_study(metered(tmp_path, BANDS, BANDS.replace('"bands"', '"n"') + 'noise = "gaussian"\n'))
    record = json.loads(json.dumps(record_of(result)))
    names = [meter["name"] for meter in record["ledger"]["meters"]]
    assert names[0] == "basic sum (ε)"
    assert names[1].startswith("Rényi prices at order")
    assert Fraction(record["questions"][0]["receipts"][0]["renyi"]) > 0
    assert record["ledger"]["remaining"]["delta"] == "2.5e-6"
    page = report_html(record)
    assert '<th scope="col" class="n wide">Rényi price</th>' in page
    assert "This ledger counts on several meters" in page
    del record["ledger"]["meters"]  # a record from before there were any
    assert "several meters" not in report_html(record)


def test_noise_without_an_epsilon_is_never_said_to_cost_none(tmp_path: Path) -> None:
    asked = question("old", "count", where="age >= 60", noise="gaussian", epsilon=0.5)
    path = write_metered(tmp_path, asked)
    printed = CliRunner().invoke(app, ["run", str(path)]).output
    assert "ρ 0." in printed
    assert "ε 0 " not in printed
    shown = CliRunner().invoke(app, ["answers", str(path)]).output
    assert "ρ 0." in shown
    (row,) = json.loads(CliRunner().invoke(app, ["answers", str(path), "--json"]).output)
    assert (row["epsilon"], float(row["rho"]) > 0) == (None, True)
    record = record_of(run_study(read_study(path)))
    bill = report_html(record).partition('<table class="bill">')[2].partition("</table>")[0]
    assert "ρ 0." in bill
    assert '<td class="n">0</td>' not in bill
    receipt = record["questions"][0]["receipts"][0]
    assert [receipt[name]["epsilon"] for name in ("reserved", "charged", "refunded")] == [None] * 3
    assert receipt["used"] == record["questions"][0]["how"]["charged"]
    page = report_html(record)
    assert "Together" not in page  # of ε: there is none
    assert "closed by charges of another kind" in page
    assert "full" not in str(Ledger.load(f"sqlite:///{tmp_path}/books.db", "people").meters[0])
    ledger = Ledger(epsilon=1, delta="1e-6", accounting="renyi")
    release = ledger.run(Gaussian(epsilon="0.1", delta="1e-7", sensitivity=1), on=5)
    assert str(release.charged).startswith("ρ 0.")
    assert "ρ 0." in repr(release.charged)
    assert release.charged == release.entry.charged == Cost(0)
