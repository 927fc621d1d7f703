(* Renyi prices by part, and a ledger with two meters: one counts epsilons, the other Renyi prices; a mechanism is admitted if
   either has room for its worst case. All mechanisms have delta = 0. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum interval.
From mathcomp.classical Require Import mathcomp_extra boolp classical_sets functions cardinality fsbigop.
From mathcomp.analysis Require Import reals ereal sequences exp esum topology normedtype derive realfun nsatz_realtype.
From Expost Require Import laws odp composition.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory numFieldTopology.Exports numFieldNormedType.Exports.
Local Open Scope classical_set_scope.
Local Open Scope ring_scope.

(* ---- inequalities about exp *)

Section Inequalities.
Variable R : realType.
Implicit Types (w a b u x alpha : R).

Lemma le_of_eq a b : a = b -> a <= b.
Proof. by move=> ->. Qed.

Lemma spread w a b x : (w * a + (1 - w) * b) * x = w * (a * x) + (1 - w) * (b * x).
Proof. by rewrite mulrDl !mulrA. Qed.

Lemma expR_ge x : 1 + x <= expR x.
Proof.
have [x0|/ltW x0] := leP 0 x; first exact: expR_ge1Dx.
have derivative y : y \in `]x, 0[ -> is_derive y 1 (@expR R) (expR y) by move=> _; exact: is_derive_expR.
have continuity : {within `[x, 0], continuous (@expR R)} by apply: continuous_subspaceT => y; exact: continuous_expR.
have [c /itvP c_in eq] := MVT_segment x0 derivative continuity.
rewrite -subr_ge0; have -> : expR x - (1 + x) = (1 - expR c) * - x by move: eq; rewrite expR0 => eq; nsatz.
by rewrite mulr_ge0 ?oppr_ge0 // subr_ge0 -(expR0 R) ler_expR c_in.
Qed.

(* exp is convex. *)
Lemma expR_convex w a b : 0 <= w <= 1 -> expR (w * a + (1 - w) * b) <= w * expR a + (1 - w) * expR b.
Proof.
move=> /andP[w0 w1]; set m := w * a + (1 - w) * b.
have above y : expR m * (1 + (y - m)) <= expR y.
  have -> : expR y = expR m * expR (y - m) by rewrite -expRD addrC subrK.
  by rewrite ler_wpmul2l ?expR_ge0 ?expR_ge.
have -> : expR m = w * (expR m * (1 + (a - m))) + (1 - w) * (expR m * (1 + (b - m))) by rewrite /m; nsatz.
by rewrite ler_add // ler_wpmul2l // subr_ge0.
Qed.

(* Powers with a real exponent; zero to any power is zero. *)
Definition power alpha x : R := if x <= 0 then 0 else expR (alpha * ln x).

Lemma power_ge0 alpha x : 0 <= power alpha x.
Proof. by rewrite /power; case: ifP => // _; exact: expR_ge0. Qed.

Lemma power_pos alpha x : 0 < x -> power alpha x = expR (alpha * ln x).
Proof. by rewrite /power ltNge => /negbTE ->. Qed.

Lemma power_expR alpha x : power alpha (expR x) = expR (alpha * x).
Proof. by rewrite power_pos ?expR_gt0 // expK. Qed.

Lemma powerM alpha a b : 0 <= a -> 0 <= b -> power alpha (a * b) = power alpha a * power alpha b.
Proof.
rewrite !le_eqVlt => /predU1P[<-|a0] /predU1P[<-|b0]; rewrite /power ?mulr0 ?mul0r ?lexx ?mulr0 ?mul0r //.
by rewrite -!/(power _ _) !power_pos ?mulr_gt0 // lnM ?posrE // mulrDr expRD.
Qed.

(* The inequality of Bernoulli, for a real exponent. *)
Lemma bernoulli alpha u : 1 < alpha -> 0 < u -> 1 + alpha * (u - 1) <= power alpha u.
Proof.
move=> al u0; have alpha0 : 0 < alpha by exact: lt_trans ltr01 al.
have w01 : 0 <= alpha^-1 <= 1 by rewrite invr_ge0 ltW //= invf_le1 // ltW.
have := expR_convex (alpha * ln u) 0 w01; rewrite mulr0 addr0 mulKf ?gt_eqF // lnK ?posrE // expR0 mulr1.
rewrite power_pos // => /(ler_wpmul2l (ltW alpha0)); rewrite mulrDr mulVKf ?gt_eqF // mulrBr mulr1 mulfV ?gt_eqF //.
by rewrite -ler_subl_addr; apply: le_trans; rewrite (_ : 1 + _ = alpha * u - (alpha - 1)) //; nsatz.
Qed.

(* A power lies below its chords. *)
Lemma power_chord alpha w x lo hi : 1 < alpha -> 0 <= w <= 1 -> 0 < lo -> 0 < hi -> 0 < x -> x = w * hi + (1 - w) * lo ->
  power alpha x <= w * power alpha hi + (1 - w) * power alpha lo.
Proof.
move=> al /andP[w0 w1] lo0 hi0 x0 xE.
have tangent y : 0 < y -> power alpha x * (1 + alpha * (y / x - 1)) <= power alpha y.
  move=> y0; have -> : power alpha y = power alpha x * power alpha (y / x).
    by rewrite -powerM ?ltW ?divr_gt0 // mulrC mulfVK ?gt_eqF.
  by rewrite ler_wpmul2l ?power_ge0 // bernoulli ?divr_gt0.
have <- : w * (power alpha x * (1 + alpha * (hi / x - 1))) + (1 - w) * (power alpha x * (1 + alpha * (lo / x - 1))) =
    power alpha x.
  have one : w * (hi / x) + (1 - w) * (lo / x) = 1 by rewrite !mulrA -mulrDl -xE divff ?gt_eqF.
  move: one; set h := hi / x; set l := lo / x => one; nsatz.
by rewrite ler_add // ler_wpmul2l ?subr_ge0 // tangent.
Qed.

End Inequalities.

(* ---- prices *)

Section Prices.
Variables (R : realType) (alpha : R).
Hypothesis alpha1 : 1 < alpha.

Let alpha_1 : 0 < alpha - 1.
Proof. by rewrite subr_gt0. Qed.

(* One output's share of the Renyi sum: q (p/q)^alpha e^{-(alpha-1) r}. *)
Definition renyi_term (p q r : R) : R := q * power alpha (p / q) * expR (- (alpha - 1) * r).

(* Ex-post Renyi privacy: prices r are valid for the laws p, q. *)
Definition valid_prices (O : choiceType) (r : O -> R) (p q : O -> R) : Prop :=
  (forall o, q o = 0 -> p o = 0) /\ (total (fun o => renyi_term (p o) (q o) (r o)) <= 1)%E.

(* The tangent price of a part with epsilon E; beta is chosen once for all parts. *)
Definition tangent_price (beta E : R) : R :=
  Num.max (alpha * E - ln (1 + beta * (expR E - 1))) (- alpha * E - ln (1 - beta * (1 - expR (- E)))) / (alpha - 1).

Lemma renyi_term_ge0 p q r : 0 <= q -> 0 <= renyi_term p q r.
Proof. by move=> q0; rewrite !mulr_ge0 ?power_ge0 ?expR_ge0. Qed.

(* At the price the power is at most the line 1 + beta (x - 1): at both ends by the choice of the price, between them because
   a power lies below its chords. *)
Lemma below_the_line beta E x : 0 <= beta -> 0 <= E -> beta * (1 - expR (- E)) < 1 -> expR (- E) <= x -> x <= expR E ->
  power alpha x * expR (- (alpha - 1) * tangent_price beta E) <= 1 + beta * (x - 1).
Proof.
move=> beta0 E0 room lox xhi; set lo := expR (- E); set hi := expR E; set factor := expR _.
have scaled : - (alpha - 1) * tangent_price beta E =
    - Num.max (alpha * E - ln (1 + beta * (hi - 1))) (- alpha * E - ln (1 - beta * (1 - lo))).
  by rewrite mulNr mulrC divfK // gt_eqF.
have high : power alpha hi * factor <= 1 + beta * (hi - 1).
  have pos : 0 < 1 + beta * (hi - 1) by rewrite ltr_spaddl // mulr_ge0 // subr_ge0 -(expR0 R) ler_expR.
  rewrite power_expR /factor -expRD -[leRHS](lnK pos) ler_expR scaled -ler_subr_addl ler_oppl.
  by rewrite le_maxr; apply/orP; left; apply: le_of_eq; nsatz.
have low : power alpha lo * factor <= 1 + beta * (lo - 1).
  have line : 1 + beta * (lo - 1) = 1 - beta * (1 - lo) by rewrite -mulrN opprB.
  have pos : 0 < 1 - beta * (1 - lo) by rewrite subr_gt0.
  rewrite line power_expR /factor -expRD -[leRHS](lnK pos) ler_expR scaled -ler_subr_addl ler_oppl.
  by rewrite le_maxr; apply/orP; right; apply: le_of_eq; nsatz.
have x0 : 0 < x by exact: lt_le_trans (expR_gt0 _) lox.
have [w w01 xE] : exists2 w, 0 <= w <= 1 & x = w * hi + (1 - w) * lo.
  have [same|lt] := eqVneq lo hi.
    by exists 0; rewrite ?lexx ?ler01 // mul0r add0r subr0 mul1r; apply/eqP; rewrite eq_le lox same xhi.
  have gap : 0 < hi - lo by rewrite subr_gt0 lt_neqAle lt (le_trans lox xhi).
  exists ((x - lo) / (hi - lo)).
    apply/andP; split; first by apply: divr_ge0; [rewrite subr_ge0 | exact: ltW].
    by rewrite ler_pdivr_mulr // mul1r ler_add2r.
  have one : (x - lo) / (hi - lo) * (hi - lo) = x - lo by rewrite divfK // gt_eqF.
  by move: one; set w := (x - lo) / _ => one; nsatz.
have /andP[w0 w1] := w01.
have factor0 : 0 <= factor by exact: expR_ge0.
apply: (le_trans (ler_wpmul2r factor0 (power_chord alpha1 w01 (expR_gt0 _) (expR_gt0 _) x0 xE))).
rewrite spread.
apply: (le_trans (ler_add (ler_wpmul2l w0 high) (ler_wpmul2l _ low))); first by rewrite subr_ge0.
by rewrite xE; apply: le_of_eq; nsatz.
Qed.

(* Tangent prices are valid for every guarantee with delta = 0. *)
Theorem tangent_prices_valid (O K : choiceType) (part_of : O -> K) (epsilon_of : K -> R) (beta : R) (p q : O -> R) :
  law p -> law q -> (forall k, 0 <= epsilon_of k) -> 0 <= beta -> (forall k, beta * (1 - expR (- epsilon_of k)) < 1) ->
  odp part_of epsilon_of 0 p q -> odp part_of epsilon_of 0 q p ->
  valid_prices (fun o => tangent_price beta (epsilon_of (part_of o))) p q.
Proof.
move=> lp lq E0 beta0 room /(odp_pointwise _ _ lp lq) pq /(odp_pointwise _ _ lq lp) qp.
have [p0 p1] := lp; have [q0 q1] := lq.
have continuous o : q o = 0 -> p o = 0.
  by move=> qo; apply/eqP; rewrite eq_le p0 andbT (le_trans (pq o)) // qo mulr0.
split=> //; set term := fun o => renyi_term _ _ _.
have term0 o : 0 <= term o by exact: renyi_term_ge0.
have line o : term o + beta * q o <= q o + beta * p o.
  have [qo|qn0] := eqVneq (q o) 0; first by rewrite /term /renyi_term qo continuous // !mul0r !mulr0 !addr0.
  have qgt0 : 0 < q o by rewrite lt_neqAle eq_sym qn0 q0.
  have below : power alpha (p o / q o) * expR (- (alpha - 1) * tangent_price beta (epsilon_of (part_of o))) <=
      1 + beta * (p o / q o - 1).
    apply: below_the_line => //; last by rewrite ler_pdivr_mulr.
    by rewrite ler_pdivl_mulr // expRN mulrC ler_pdivr_mulr ?expR_gt0 // mulrC.
  rewrite /term /renyi_term -mulrA; apply: (le_trans (ler_add (ler_wpmul2l (q0 o) below) (lexx _))).
  have back : p o / q o * q o = p o by rewrite divfK.
  by apply: le_of_eq; move: back; set x := p o / q o => back; nsatz.
have := total_le line; rewrite !totalD // => [|o|o]; rewrite ?mulr_ge0 //.
by rewrite !totalZ // p1 q1 mule1 ![(_ + beta%:E)%E]addeC lee_add2lE.
Qed.

(* ---- two meters *)

(* A round: the laws of its output on the two databases; perhaps an epsilon for each part (None: it has no pure guarantee);
   and valid prices. *)
Record round (O K : choiceType) := Round {
  out : bool -> O -> R;
  part : O -> K;
  pure : option (K -> R);
  price : K -> R;
  out_law : forall b, law (out b);
  pure_holds : if pure is Some E then forall b o, out b o <= expR (E (part o)) * out (~~ b) o else True;
  price_valid : forall b, valid_prices (price \o part) (out b) (out (~~ b)) }.

Inductive player : Type :=
| Leave
| Play (O K : choiceType) (r : round O K) (next : O -> player).

Fixpoint played (a : player) : choiceType :=
  match a with
  | Leave => [choiceType of unit]
  | Play _ _ _ next => [choiceType of {o : _ & played (next o)}]
  end.

Fixpoint plays (a : player) (b : bool) : played a -> R :=
  match a with
  | Leave => fun=> 1
  | Play _ _ r next => fun v => out r b (tag v) * plays b (tagged v)
  end.
Arguments plays a b v : clear implicits.

(* What the second meter shows in the end. *)
Fixpoint priced (a : player) : played a -> R :=
  match a with
  | Leave => fun=> 0
  | Play _ _ r next => fun v => price r (part r (tag v)) + priced (tagged v)
  end.
Arguments priced a v : clear implicits.

(* What is left on the first meter; None after a round without pure guarantee. *)
Definition left_after (K : choiceType) (left : option R) (E : option (K -> R)) (k : K) : option R :=
  if left is Some e then (if E is Some E' then Some (e - E' k) else None) else None.

Definition has_room (K : choiceType) (left : option R) (E : option (K -> R)) : Prop :=
  if left is Some e then (if E is Some E' then forall k, E' k <= e else False) else False.

(* The rule: at least one meter has room for the worst case; both are charged the part that came out. *)
Fixpoint metered (left : option R) (rho : R) (a : player) : Prop :=
  match a with
  | Leave => True
  | Play _ _ r next =>
      (has_room left (pure r) \/ forall k, price r k <= rho) /\
      forall o, metered (left_after left (pure r) (part r o)) (rho - price r (part r o)) (next o)
  end.

Lemma plays_ge0 a b v : 0 <= plays a b v.
Proof.
elim: a v => [|O K r next IH] v /=; first exact: ler01.
by rewrite mulr_ge0 // (out_law r b).1.
Qed.

Lemma plays_law a b : law (plays a b).
Proof.
split; first exact: plays_ge0.
elim: a => [|O K r next IH] /=.
  by rewrite /total (@esum_single _ _ tt) ?lee_fin ?ler01 // => -[].
rewrite total_tagged => [|v]; last by rewrite mulr_ge0 ?plays_ge0 ?(out_law r b).1.
rewrite -(out_law r b).2; apply: eq_esum => o _ /=.
by rewrite totalZ ?IH ?mule1 // ?(out_law r b).1 // => v; exact: plays_ge0.
Qed.

(* In every view one of the two meters was kept. *)
Lemma one_meter_kept a b left rho : (if left is Some e then 0 <= e else False) \/ 0 <= rho -> metered left rho a ->
  forall v, (if left is Some e then plays a b v <= expR e * plays a (~~ b) v else False) \/ priced a v <= rho.
Proof.
elim: a left rho => [|O K r next IH] left rho start /=.
  move=> _ []; case: start => [|rho0]; last by right.
  by case: left => // e e0; left; rewrite mulr1 -(expR0 R) ler_expR.
move=> [room rest] [o v] /=.
have {}start : (if left_after left (pure r) (part r o) is Some e then 0 <= e else False) \/ 0 <= rho - price r (part r o).
  case: room => [|fits]; last by right; rewrite subr_ge0.
  by case: left {start rest} => // e; rewrite /left_after; case: (pure r) => // E fits; left; rewrite subr_ge0.
have [kept|kept] := IH o _ _ start (rest o) v; last by right; rewrite -ler_subr_addl.
left; case: left {start rest room} kept => // e; rewrite /left_after; have := pure_holds r.
case: (pure r) => // E holds kept; set k := part r o.
have -> : expR e = expR (E k) * expR (e - E k) by rewrite -expRD addrC subrK.
rewrite mulrACA ler_pmul ?plays_ge0 ?(out_law r b).1 //; exact: holds.
Qed.

Lemma renyi_termM p q r p' q' r' : 0 <= p -> 0 <= q -> 0 <= p' -> 0 <= q' ->
  renyi_term (p * p') (q * q') (r + r') = renyi_term p q r * renyi_term p' q' r'.
Proof.
move=> p0 q0 p'0 q'0; rewrite /renyi_term mulrDr expRD.
have -> : p * p' / (q * q') = (p / q) * (p' / q') by rewrite invfM mulrACA.
rewrite (@powerM _ _ (p / q)) ?divr_ge0 //; set a := power _ (p / q); set a' := power _ (p' / q').
by set c := expR (_ * r); set c' := expR (_ * r'); nsatz.
Qed.

(* The Renyi sum of the whole view: rounds multiply, and each is at most one. *)
Lemma priced_valid a b : valid_prices (priced a) (plays a b) (plays a (~~ b)).
Proof.
elim: a => [|O K r next IH]; split=> /= [v|].
- by move=> /eqP; rewrite oner_eq0.
- rewrite /total (@esum_single _ _ tt) => [|//|[] //]; last by rewrite lee_fin renyi_term_ge0 ?ler01.
  by rewrite lee_fin /renyi_term divr1 power_pos ?ltr01 // ln1 !mulr0 expR0 !mulr1.
- move=> /eqP; rewrite mulf_eq0 => /orP[] /eqP zero.
    by rewrite (price_valid r b).1 ?mul0r.
  by rewrite (IH _).1 ?mulr0.
- have [q0 _] := out_law r (~~ b).
  have term0 o : 0 <= renyi_term (out r b o) (out r (~~ b) o) (price r (part r o)) by exact: renyi_term_ge0.
  rewrite total_tagged => [|v]; last by rewrite renyi_term_ge0 // mulr_ge0 ?plays_ge0.
  apply: le_trans (price_valid r b).2; apply: le_esum => o _ /=.
  under eq_total do rewrite renyi_termM ?plays_ge0 ?(out_law r _).1 //.
  rewrite totalZ // => [|v]; last by rewrite renyi_term_ge0 ?plays_ge0.
  by rewrite -[leRHS]mule1 lee_wpmul2l ?lee_fin // (IH o).2.
Qed.

(* What the second meter may show for (e, d)-privacy. *)
Definition renyi_limit (e d : R) : R :=
  e - ln d^-1 / (alpha - 1) + (ln (alpha - 1) - alpha * ln (1 - alpha^-1)) / (alpha - 1).

(* Under that limit the gap is paid from d. *)
Lemma gap_below_term (e d p q r : R) : 0 < d -> 0 <= p -> 0 <= q -> (q = 0 -> p = 0) -> r <= renyi_limit e d ->
  Num.max 0 (p - expR e * q) <= d * renyi_term p q r.
Proof.
move=> d0 p0 q0 pq rle; have term0 : 0 <= d * renyi_term p q r by rewrite mulr_ge0 ?renyi_term_ge0 // ltW.
rewrite le_maxl term0 /=.
have [qz|qn0] := eqVneq q 0; first by rewrite (le_trans _ term0) // (pq qz) qz mulr0 subr0.
have [pz|pn0] := eqVneq p 0; first by rewrite (le_trans _ term0) // pz sub0r oppr_le0 mulr_ge0 ?expR_ge0.
have qpos : 0 < q by rewrite lt_neqAle eq_sym qn0.
have ppos : 0 < p by rewrite lt_neqAle eq_sym pn0.
pose c := 1 - alpha^-1; pose u := p / q * expR (- e).
have alpha0 : 0 < alpha by exact: lt_trans ltr01 alpha1.
have c0 : 0 < c by rewrite subr_gt0 invf_lt1.
have u0 : 0 < u by rewrite mulr_gt0 ?divr_gt0 ?expR_gt0.
(* at the limit d times the factor is what bernoulli needs *)
have limit : d * expR (- (alpha - 1) * renyi_limit e d) = expR (- (alpha - 1) * e) * power alpha c / (alpha - 1).
  have -> : - (alpha - 1) * renyi_limit e d = - (alpha - 1) * e + alpha * ln c + (ln d^-1 - ln (alpha - 1)).
    rewrite /renyi_limit -/c; have back x : x / (alpha - 1) * (alpha - 1) = x by rewrite divfK // gt_eqF.
    move: (back (ln d^-1)) (back (ln (alpha - 1) - alpha * ln c)).
    by set x := ln d^-1 / _; set y := (_ - _) / (alpha - 1) => xE yE; nsatz.
  rewrite !expRD expRN !lnK ?posrE ?invr_gt0 // power_pos //.
  have := mulfV (lt0r_neq0 d0); set x := d^-1; set y := (alpha - 1)^-1; set z := expR (_ * e); set w := expR (_ * ln c).
  by move=> one; nsatz.
have factor : d * expR (- (alpha - 1) * renyi_limit e d) <= d * expR (- (alpha - 1) * r).
  by rewrite ler_wpmul2l ?(ltW d0) // ler_expR ler_wnmul2l // oppr_le0 ltW.
have bern : (alpha - 1) * (u - 1) <= power alpha (u * c).
  apply: le_trans (bernoulli alpha1 (mulr_gt0 u0 c0)).
  by apply: le_of_eq; rewrite /c; have := mulfV (lt0r_neq0 alpha0); move: alpha^-1 => i one; nsatz.
have split_u : power alpha (p / q) * expR (- (alpha - 1) * e) = expR e * power alpha u.
  rewrite (@powerM _ _ (p / q)) ?divr_ge0 ?expR_ge0 ?(ltW qpos) // power_expR [RHS]mulrCA; congr (_ * _).
  by rewrite -expRD; congr expR; nsatz.
rewrite /renyi_term mulrCA; apply: (le_trans _ (ler_wpmul2l _ factor)); last first.
  by rewrite mulr_ge0 ?power_ge0.
rewrite limit !mulrA -[_ * power alpha (p / q) * _]mulrA split_u.
have -> : p - expR e * q = q * expR e * (u - 1).
  have back : p / q * q = p by rewrite divfK.
  have cancel : expR e * expR (- e) = 1 by exact: expRxMexpNx_1.
  by move: back cancel; rewrite /u; set x := p / q; set y := expR (- e); set z := expR e => back cancel; nsatz.
rewrite [leRHS](_ : _ = q * expR e * (power alpha (u * c) / (alpha - 1))); last first.
  rewrite (@powerM _ _ u) ?(ltW u0) ?(ltW c0) //.
  by set y := power _ u; set z := power _ c; set w := (alpha - 1)^-1; set t := expR e; nsatz.
by rewrite ler_wpmul2l ?mulr_ge0 ?expR_ge0 // ler_pdivl_mulr // mulrC.
Qed.

(* The two-meter theorem: whoever keeps to the rule has an (e, d)-private view. *)
Theorem two_meters a b e d : 0 <= e -> 0 < d -> metered (Some e) (renyi_limit e d) a ->
  dp e d (plays a b) (plays a (~~ b)).
Proof.
move=> e0 d0 rule; have lq := plays_law a (~~ b); have lp := plays_law a b.
apply: (@odp_to_dp _ _ _ id (fun=> e)) => //; apply/hockey_stick => //.
have [continuous small] := priced_valid a b.
have term0 v : 0 <= renyi_term (plays a b v) (plays a (~~ b) v) (priced a v) by rewrite renyi_term_ge0 ?plays_ge0.
apply: (@le_trans _ _ (total (fun v => d * renyi_term (plays a b v) (plays a (~~ b) v) (priced a v)))); last first.
  by rewrite totalZ ?(ltW d0) // -[leRHS]mule1 lee_wpmul2l ?lee_fin ?(ltW d0).
apply: total_le => v /=; have [kept|kept] := @one_meter_kept a b (Some e) _ (or_introl e0) rule v.
  by rewrite max_l ?subr_le0 // mulr_ge0 // ltW.
by apply: gap_below_term; rewrite ?plays_ge0 //; exact: continuous.
Qed.

(* A mechanism with delta = 0 and its tangent prices make a round. *)
Section TangentRound.
Variables (D : Type) (nb : D -> D -> Prop) (O K : choiceType) (m : mechanism R nb O K) (x : bool -> D) (beta : R).
Hypotheses (near : forall b, nb (x b) (x (~~ b))) (pure_delta : delta m = 0) (beta0 : 0 <= beta).
Hypothesis room : forall k, beta * (1 - expR (- epsilon_of m k)) < 1.

Let kept b : odp (part_of m) (epsilon_of m) 0 (run m (x b)) (run m (x (~~ b))).
Proof. by rewrite -pure_delta; exact: keeps (near b). Qed.

Let kept_pointwise b o : run m (x b) o <= expR (epsilon_of m (part_of m o)) * run m (x (~~ b)) o.
Proof. exact: (odp_pointwise _ _ (run_law m _) (run_law m _)).1 (kept b) o. Qed.

Let tangent_valid b :
  valid_prices ((fun k => tangent_price beta (epsilon_of m k)) \o part_of m) (run m (x b)) (run m (x (~~ b))).
Proof.
apply: tangent_prices_valid => //; try exact: run_law; first exact: epsilon_ge0.
by have := kept (~~ b); rewrite negbK.
Qed.

Definition tangent_round : round O K :=
  @Round O K (fun b => run m (x b)) (part_of m) (Some (epsilon_of m)) (fun k => tangent_price beta (epsilon_of m k))
    (fun b => run_law m (x b)) kept_pointwise tangent_valid.

End TangentRound.
End Prices.
