(* Theorem 7: output differential privacy composes adaptively, with refunds. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum.
From mathcomp.classical Require Import mathcomp_extra boolp classical_sets functions cardinality fsbigop.
From mathcomp.analysis Require Import reals ereal sequences exp esum.
From Expost Require Import laws odp.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope classical_set_scope.
Local Open Scope ring_scope.

Section Composition.
Variable R : realType.
Implicit Types (a : adversary R) (b : bool) (e d : R).

(* One round, at one output and one view of what follows. The round has probabilities p, q and epsilon E; what follows has
   p', q' and costs s. *)
Lemma one_round (p q E p' q' s : R) : 0 <= p -> 0 <= q -> 0 <= p' -> 0 <= q' ->
  Num.max 0 (p * p' - expR (E + s) * (q * q')) <=
  Num.max 0 (p - expR E * q) * p' + p * Num.max 0 (p' - expR s * q').
Proof.
move=> p0 q0 p'0 q'0; set lost := Num.max 0 (p - expR E * q); set rest := Num.max 0 (p' - expR s * q').
have lost_le_p : lost <= p by rewrite le_maxl p0 /= ler_subl_addr ler_addl mulr_ge0 ?expR_ge0.
have kept_le : p - lost <= expR E * q by rewrite ler_subl_addl -ler_subl_addr le_positive.
rewrite le_maxl addr_ge0 ?mulr_ge0 ?positive_ge0 //=.
have -> : p * p' - expR (E + s) * (q * q') = lost * p' + ((p - lost) * p' - expR E * q * (expR s * q')).
  by rewrite expRD mulrACA mulrBl -addrA addrCA addNKr.
rewrite ler_add2l (@le_trans _ _ ((p - lost) * (p' - expR s * q'))) //.
  by rewrite mulrBr ler_add2l ler_opp2 ler_wpmul2r // mulr_ge0 ?expR_ge0.
rewrite (@le_trans _ _ ((p - lost) * rest)) ?ler_wpmul2l ?subr_ge0 ?le_positive //.
by rewrite ler_wpmul2r ?positive_ge0 // ler_subl_addr ler_addl positive_ge0.
Qed.

Lemma views_ge0 a b v : 0 <= views a b v.
Proof.
elim: a v => [|D nb O K m x near next IH] v /=; first exact: ler01.
by rewrite mulr_ge0 // (run_law m _).1.
Qed.

Lemma views_law a b : law (views a b).
Proof.
split; first exact: views_ge0.
elim: a => [|D nb O K m x near next IH] /=.
  by rewrite /total (@esum_single _ _ tt) ?lee_fin ?ler01 // => -[].
rewrite total_tagged => [|v]; last by rewrite mulr_ge0 ?views_ge0 ?(run_law m _).1.
rewrite -(run_law m (x b)).2; apply: eq_esum => o _ /=.
by rewrite totalZ ?IH ?mule1 // ?(run_law m _).1 // => v; exact: views_ge0.
Qed.

(* The probability of a set of views, round by round. *)
Lemma pr_ask (D : Type) (nb : D -> D -> Prop) (O K : choiceType) (m : mechanism R nb O K) (x : bool -> D)
    (near : forall b, nb (x b) (x (~~ b))) (next : O -> adversary R) b (S : set (view (Ask m near next))) :
  pr (views (Ask m near next) b) S =
  (\esum_(o in setT) ((run m (x b) o)%:E * pr (views (next o) b) [set v | S (Tagged (fun o => view (next o)) v)]))%E.
Proof.
rewrite pr_total total_tagged => [|v]; last first.
  by case: ifP => _ //=; rewrite mulr_ge0 ?views_ge0 ?(run_law m _).1.
apply: eq_esum => o _; rewrite pr_total -totalZ ?(run_law m _).1 //; last first.
  by move=> v; case: ifP => _ //; exact: views_ge0.
apply: eq_total => v /=; set w := Tagged _ _.
rewrite (_ : (w \in S) = (v \in [set v | S (Tagged (fun o => view (next o)) v)])); first by case: ifP; rewrite ?mulr0.
by apply/idP/idP; rewrite !inE.
Qed.

(* The deltas of the rounds on every path sum up to at most d. *)
Fixpoint deltas_within d a : Prop :=
  match a with
  | Stop => 0 <= d
  | Ask _ _ _ _ m _ _ next => delta m <= d /\ forall o, deltas_within (d - delta m) (next o)
  end.

(* Under the rule of Algorithm 1 no path spends more than (e, d). *)
Lemma admitted_spends a e d : 0 <= e -> 0 <= d -> admitted e d a -> deltas_within d a /\ forall v, spent a v <= e.
Proof.
elim: a e d => [|D nb O K m x near next IH] e d e0 d0 //= [worst fits rest].
have after o : deltas_within (d - delta m) (next o) /\ forall v, spent (next o) v <= e - epsilon_of m (part_of m o).
  by apply: IH (rest o); rewrite subr_ge0.
split; first by split=> // o; exact: (after o).1.
by move=> [o v] /=; rewrite -ler_subr_addl; exact: (after o).2.
Qed.

Lemma excess_views a b d : deltas_within d a -> (excess (spent a) (views a b) (views a (~~ b)) <= d%:E)%E.
Proof.
elim: a d => [|D nb O K m x near next IH] d /=.
  move=> d0; rewrite /excess (_ : total _ = 0%E) //; apply: esum1 => v _.
  by rewrite expR0 mulr1 subrr max_l.
move=> [fits rest].
pose p := run m (x b); pose q := run m (x (~~ b)); pose E o := epsilon_of m (part_of m o).
pose lost o := Num.max 0 (p o - expR (E o) * q o).
have lost0 o : 0 <= lost o by exact: positive_ge0.
have [p0 p1] : law p by exact: run_law.
have [q0 _] : law q by exact: run_law.
rewrite /excess total_tagged => [|v]; last exact: positive_ge0.
apply: (@le_trans _ _ (\esum_(o in setT) (lost o + (d - delta m) * p o)%:E)%E).
  apply: le_esum => o _ /=.
  pose p' := views (next o) b; pose q' := views (next o) (~~ b); pose s := spent (next o).
  have p'0 v : 0 <= p' v by exact: views_ge0.
  have q'0 v : 0 <= q' v by exact: views_ge0.
  apply: (@le_trans _ _ (total (fun v => lost o * p' v + p o * Num.max 0 (p' v - expR (s v) * q' v)))).
    by apply: total_le => v; exact: one_round.
  rewrite totalD; try by move=> v; rewrite mulr_ge0 ?positive_ge0.
  rewrite !totalZ //; last by move=> v; exact: positive_ge0.
  rewrite (views_law _ _).2 mule1 EFinD lee_add2l // [((d - _) * _)%R]mulrC EFinM lee_wpmul2l ?lee_fin //.
  exact: IH.
have dd : 0 <= d - delta m by rewrite subr_ge0.
rewrite -/(total (fun o => lost o + (d - delta m) * p o)) totalD ?totalZ //; last by move=> o; rewrite mulr_ge0.
rewrite p1 mule1 [d%:E](_ : _ = ((delta m)%:E + (d - delta m)%:E)%E); last by rewrite -EFinD addrC subrK.
rewrite lee_add2r //.
by apply/(hockey_stick _ _ _ (run_law m _) (run_law m _)); exact: keeps (near b).
Qed.

(* thm-composition-is-odp: the view itself keeps a guarantee, with the sum of what was charged as its epsilon. *)
Theorem composition_is_odp a b d : deltas_within d a -> odp id (spent a) d (views a b) (views a (~~ b)).
Proof. by move=> fits; apply/hockey_stick; [exact: views_law.. | exact: excess_views]. Qed.

(* Theorem 7, in both directions (thm-composition). *)
Theorem composition_both a b e d : 0 <= e -> 0 <= d -> admitted e d a -> dp e d (views a b) (views a (~~ b)).
Proof.
move=> e0 d0 /(admitted_spends e0 d0) [fits worst].
by apply: (odp_to_dp (views_law _ _) _ (composition_is_odp b fits)).
Qed.

(* Theorem 7. *)
Theorem composition (a : adversary R) (e d : R) :
  0 <= e -> 0 <= d -> admitted e d a -> dp e d (views a false) (views a true).
Proof. exact: composition_both. Qed.

End Composition.
