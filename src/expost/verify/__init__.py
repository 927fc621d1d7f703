"""Exact checks of finite mechanisms, of interactive ones, and of the composition game."""

from expost.verify.draws import law as law
from expost.verify.draws import tabulate as tabulate
from expost.verify.finite import FiniteMechanism as FiniteMechanism
from expost.verify.finite import Verdict as Verdict
from expost.verify.finite import Witness as Witness
from expost.verify.finite import check as check
from expost.verify.finite import hockey_stick as hockey_stick
from expost.verify.finite import least_delta as least_delta
from expost.verify.finite import least_delta_at as least_delta_at
from expost.verify.finite import least_ratios as least_ratios
from expost.verify.finite import log_up as log_up
from expost.verify.finite import tightest as tightest
from expost.verify.game import Move as Move
from expost.verify.game import play as play
from expost.verify.game import worst_delta as worst_delta
from expost.verify.game import worst_delta_at as worst_delta_at
from expost.verify.game import worst_ratio as worst_ratio
from expost.verify.interaction import FiniteInteraction as FiniteInteraction
from expost.verify.interaction import check_interaction as check_interaction
