(* Output differential privacy: the definitions, and how guarantees follow from guarantees.

   Numbers of definitions, lemmas and algorithms are those of the paper (Hartmann et al. 2022); names are those of
   src/expost/guarantee.py. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum.
From mathcomp.classical Require Import mathcomp_extra boolp classical_sets functions cardinality fsbigop.
From mathcomp.analysis Require Import reals ereal sequences exp esum.
From Expost Require Import laws.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope classical_set_scope.
Local Open Scope ring_scope.

Section Definitions.
Variable R : realType.

(* Definition 1, differential privacy of two output laws: p on one database, q on its neighbour. *)
Definition dp (O : choiceType) (epsilon delta : R) (p q : O -> R) : Prop :=
  forall S : set O, (pr p S <= (expR epsilon)%:E * pr q S + delta%:E)%E.

(* Definition 2, output differential privacy. Each output has a part, each part an epsilon; delta is one for all of them. *)
Definition odp (O K : choiceType) (part_of : O -> K) (epsilon_of : K -> R) (delta : R) (p q : O -> R) : Prop :=
  forall S : set O,
    (pr p S <= delta%:E + \esum_(k in setT) ((expR (epsilon_of k))%:E * pr q (S `&` [set o | part_of o = k])))%E.

(* A mechanism: the law of its outputs on each database, and a guarantee (P, E, delta) that it keeps between neighbours. *)
Record mechanism (D : Type) (neighbours : D -> D -> Prop) (O K : choiceType) := Mechanism {
  run : D -> O -> R;
  part_of : O -> K;
  epsilon_of : K -> R;
  delta : R;
  run_law : forall x, law (run x);
  epsilon_ge0 : forall k, 0 <= epsilon_of k;
  delta_ge0 : 0 <= delta;
  keeps : forall x y, neighbours x y -> odp part_of epsilon_of delta (run x) (run y) }.

(* Algorithm 1. An adversary stops, or asks: it chooses two databases, x false and x true, that are neighbours in both
   orders, and a mechanism with its guarantee; how it goes on depends on the output. Every branch ends, but there is no
   bound on their lengths. *)
Inductive adversary : Type :=
| Stop
| Ask (D : Type) (neighbours : D -> D -> Prop) (O K : choiceType) (m : mechanism neighbours O K)
      (x : bool -> D) (near : forall b, neighbours (x b) (x (~~ b))) (next : O -> adversary).

(* A view is all outputs, in order. *)
Fixpoint view (a : adversary) : choiceType :=
  match a with
  | Stop => [choiceType of unit]
  | Ask _ _ _ _ _ _ _ next => [choiceType of {o : _ & view (next o)}]
  end.

(* The probability of a view when the databases x b are the true ones. *)
Fixpoint views (a : adversary) (b : bool) : view a -> R :=
  match a with
  | Stop => fun=> 1
  | Ask _ _ _ _ m x _ next => fun v => run m (x b) (tag v) * views b (tagged v)
  end.

(* The rule of Algorithm 1: every guarantee fits what is left of (e, d) even at its worst; then the epsilon of the part that
   came out is charged, and delta whatever came out. *)
Fixpoint admitted (e d : R) (a : adversary) : Prop :=
  match a with
  | Stop => True
  | Ask _ _ _ _ m _ _ next =>
      [/\ forall k, epsilon_of m k <= e, delta m <= d
        & forall o, admitted (e - epsilon_of m (part_of m o)) (d - delta m) (next o)]
  end.

(* What a view was charged in all. *)
Fixpoint spent (a : adversary) : view a -> R :=
  match a with
  | Stop => fun=> 0
  | Ask _ _ _ _ m _ _ next => fun v => epsilon_of m (part_of m (tag v)) + spent (tagged v)
  end.

(* How far p passes e^E q, E being the epsilon of each output. *)
Definition excess (O : choiceType) (E : O -> R) (p q : O -> R) : \bar R :=
  total (fun o => Num.max 0 (p o - expR (E o) * q o)).

End Definitions.

Arguments run {R D neighbours O K} m x o.
Arguments part_of {R D neighbours O K} m o.
Arguments epsilon_of {R D neighbours O K} m k.
Arguments delta {R D neighbours O K} m.
Arguments views {R} a b v.
Arguments spent {R} a v.
Arguments Stop {R}.

(* ---- the hockey-stick form *)

Section HockeyStick.
Variables (R : realType) (O K : choiceType) (part_of : O -> K) (epsilon_of : K -> R).
Implicit Types (p q : O -> R) (E : O -> R) (d : R).

Lemma expR_ge0 (x : R) : 0 <= expR x.
Proof. exact/ltW/expR_gt0. Qed.

Lemma positive_ge0 (x : R) : 0 <= Num.max 0 x.
Proof. by rewrite le_maxr lexx. Qed.

Lemma le_positive (x : R) : x <= Num.max 0 x.
Proof. by rewrite le_maxr lexx orbT. Qed.

Lemma excess_ge0 E p q : (0 <= excess E p q)%E.
Proof. by apply: total_ge0 => o; exact: positive_ge0. Qed.

Lemma by_part q S : (forall o, 0 <= q o) ->
  (\esum_(k in setT) ((expR (epsilon_of k))%:E * pr q (S `&` [set o | part_of o = k])) =
   \esum_(o in S) (expR (epsilon_of (part_of o)) * q o)%:E)%E.
Proof. by move=> q0; apply: esum_by_part => // k; exact: expR_ge0. Qed.

(* thm-odp-hockey-stick: the worst set is where p passes e^E q. *)
Theorem hockey_stick d p q : law p -> law q ->
  odp part_of epsilon_of d p q <-> (excess (epsilon_of \o part_of) p q <= d%:E)%E.
Proof.
move=> [p0 p1] [q0 _]; pose E := epsilon_of \o part_of; pose bound o := expR (E o) * q o.
have b0 o : 0 <= bound o by rewrite mulr_ge0 ?expR_ge0.
split=> [claim|small] => [|S].
- pose S := [set o | bound o < p o].
  have := claim S; rewrite by_part // => {}claim.
  have fin : (\esum_(o in S) (bound o)%:E)%E \is a fin_num.
    rewrite ge0_fin_numE ?esum_ge0 // => [|o _]; last by rewrite lee_fin.
    apply: (@le_lt_trans _ _ 1%E); last by rewrite ltry.
    rewrite -p1 [leLHS]esum_mkcond; apply: le_esum => o _.
    by case: ifP => [|_]; rewrite ?lee_fin // inE => /ltW.
  rewrite -(lee_add2lE _ _ fin) [leRHS]addeC; apply: le_trans claim; rewrite addeC.
  rewrite [X in (_ + X)%E]esum_mkcond [leRHS]esum_mkcond -esumD.
  + apply: le_esum => o _; rewrite -/(E o) -/(bound o); case: ifPn; rewrite ?inE ?notin_set.
      by move=> /ltW le; rewrite -EFinD lee_fin max_r ?subr_ge0 // subrK.
    by move=> /negP; rewrite -leNgt => le; rewrite max_l ?subr_le0 // adde0.
  + by move=> o _; rewrite lee_fin positive_ge0.
  + by move=> o _; case: ifP; rewrite lee_fin.
- rewrite by_part //; apply: (@le_trans _ _ (excess E p q + \esum_(o in S) (bound o)%:E)%E); last exact: lee_add2r.
  rewrite /pr esum_mkcond [X in (_ + X)%E]esum_mkcond -esumD.
  + apply: le_esum => o _; case: ifP => _; last by rewrite adde0 lee_fin positive_ge0.
    by rewrite -EFinD lee_fin -ler_subl_addr le_positive.
  + by move=> o _; rewrite lee_fin positive_ge0.
  + by move=> o _; case: ifP; rewrite lee_fin.
Qed.

(* With delta = 0 the guarantee holds at every output. *)
Lemma odp_pointwise p q : law p -> law q ->
  odp part_of epsilon_of 0 p q <-> (forall o, p o <= expR (epsilon_of (part_of o)) * q o).
Proof.
move=> lp lq; rewrite hockey_stick //; split=> [small o|small].
- have := total_le0 (fun o => positive_ge0 _) small o.
  by move=> zero; rewrite -subr_le0 -[leRHS]zero le_positive.
- rewrite [X in (X <= _)%E](_ : _ = 0%E) //; apply: esum1 => o _.
  by rewrite max_l // subr_le0; exact: small.
Qed.

(* A larger epsilon needs no larger delta. *)
Lemma le_excess E E' p q : (forall o, 0 <= q o) -> (forall o, E o <= E' o) -> (excess E' p q <= excess E p q)%E.
Proof.
move=> q0 EE; apply: total_le => o; rewrite le_maxl positive_ge0 /= (le_trans _ (le_positive _)) //.
by rewrite ler_add2l ler_opp2 ler_wpmul2r // ler_expR.
Qed.

End HockeyStick.

(* ---- guarantees from guarantees *)

Section Lemmas.
Variable R : realType.
Implicit Types O K : choiceType.

(* Lemma 3 (lem-dp-to-odp): differential privacy is a guarantee for every partition. *)
Lemma dp_to_odp O K (part_of : O -> K) (e d : R) (p q : O -> R) : law q ->
  dp e d p q -> odp part_of (fun=> e) d p q.
Proof.
move=> [q0 _] private S; apply: (le_trans (private S)); rewrite addeC lee_add2l // by_part //.
by rewrite /pr -esumZ ?expR_ge0 // => o; rewrite lee_fin.
Qed.

(* Lemma 4 (lem-odp-to-dp): the worst case is ordinary differential privacy. *)
Lemma odp_to_dp O K (part_of : O -> K) (epsilon_of : K -> R) (e d : R) (p q : O -> R) : law q ->
  (forall o, epsilon_of (part_of o) <= e) -> odp part_of epsilon_of d p q -> dp e d p q.
Proof.
move=> [q0 _] worst claim S; apply: (le_trans (claim S)); rewrite addeC lee_add2r // by_part //.
rewrite /pr -esumZ ?expR_ge0 //.
by apply: le_esum => o _; rewrite -EFinM lee_fin ler_wpmul2r // ler_expR.
Qed.

(* Lemma 6 (lem-subsets): a guarantee for the subsets of each part; their deltas add up. *)
Lemma subsets_to_odp O K (part_of : O -> K) (epsilon_of delta_of : K -> R) (d : R) (p q : O -> R) :
  law p -> law q -> (forall k, 0 <= delta_of k) -> (total delta_of <= d%:E)%E ->
  (forall k (S : set O), (forall o, S o -> part_of o = k) ->
     (pr p S <= (expR (epsilon_of k))%:E * pr q S + (delta_of k)%:E)%E) ->
  odp part_of epsilon_of d p q.
Proof.
move=> [p0 _] [q0 _] d0 small claim S.
have -> : pr p S = (\esum_(k in setT) (1%:E * pr p (S `&` [set o | part_of o = k])))%E.
  by rewrite (esum_by_part part_of S (fun=> ler01)) //; apply: eq_esum => o _; rewrite mul1r.
have w0 k : (0 <= (expR (epsilon_of k))%:E * pr q (S `&` [set o | part_of o = k]))%E.
  by rewrite mule_ge0 ?pr_ge0 // lee_fin expR_ge0.
apply: (le_trans _ (lee_add2r _ small)); rewrite /total -esumD //.
  by apply: le_esum => k _; rewrite mul1e [leRHS]addeC; apply: claim => o [_].
by move=> k _; rewrite lee_fin.
Qed.

(* Post-processing by a map f that may draw coins but sees no data: f o y is the probability that o becomes y. *)
Definition post_processed O Y (f : O -> Y -> R) (p : O -> R) (y : Y) : R := fine (total (fun o => p o * f o y)).

Section PostProcessing.
Variables (O Y : choiceType) (f : O -> Y -> R).
Hypothesis f_law : forall o, law (f o).

Lemma f_ge0 o y : 0 <= f o y.
Proof. exact: (f_law o).1. Qed.

Lemma f_le1 o y : f o y <= 1.
Proof. by rewrite -lee_fin -(f_law o).2; exact: term_le_total (f_ge0 o). Qed.

Lemma post_processedE p y : law p -> (post_processed f p y)%:E = total (fun o => p o * f o y).
Proof.
move=> [p0 p1]; have pf0 o : 0 <= p o * f o y by rewrite mulr_ge0 ?f_ge0.
rewrite fineK // ge0_fin_numE ?total_ge0 //; apply: (@le_lt_trans _ _ 1%E); last by rewrite ltry.
by rewrite -p1; apply: total_le => o; rewrite ler_pimulr ?f_le1.
Qed.

Lemma post_processed_law p : law p -> law (post_processed f p).
Proof.
move=> lp; have [p0 p1] := lp; split=> [y|].
  by rewrite -lee_fin post_processedE //; apply: total_ge0 => o; rewrite mulr_ge0 ?f_ge0.
rewrite /total (eq_esum (b := fun y => total (fun o => p o * f o y))); last by move=> y _; rewrite post_processedE.
rewrite esum_swap; last by move=> y o; rewrite lee_fin mulr_ge0 ?f_ge0.
rewrite -p1; apply: eq_esum => o _; have := totalZ (p0 o) (f_ge0 o).
by rewrite (f_law o).2 mule1.
Qed.

(* lem-post-processing, the sup rule: a new output costs at least as much as every output that can become it. *)
Lemma post_processing (E : O -> R) (E' : Y -> R) (d : R) (p q : O -> R) : law p -> law q ->
  (forall o y, 0 < f o y -> E o <= E' y) -> odp id E d p q ->
  odp id E' d (post_processed f p) (post_processed f q).
Proof.
move=> lp lq sup /hockey_stick - /(_ lp lq) small; have [p0 p1] := lp; have [q0 q1] := lq.
apply/hockey_stick; try exact: post_processed_law.
pose gap o := Num.max 0 (p o - expR (E o) * q o).
have gf0 o y : 0 <= gap o * f o y by rewrite mulr_ge0 ?positive_ge0 ?f_ge0.
apply: (le_trans _ small); rewrite /excess /=.
apply: (@le_trans _ _ (\esum_(y in setT) total (fun o => gap o * f o y)%R)%E); last first.
  rewrite esum_swap; last by move=> y o; rewrite lee_fin.
  apply: le_esum => o _; have := totalZ (positive_ge0 (p o - expR (E o) * q o)) (f_ge0 o).
  by rewrite (f_law o).2 mule1 => <-; exact: lexx.
apply: le_esum => y _; case: (leP 0 (_ - _)) => _; last exact: total_ge0.
rewrite EFinB EFinM !post_processedE //.
have qf0 o : 0 <= q o * f o y by rewrite mulr_ge0 ?f_ge0.
rewrite lee_subl_addr; last by rewrite -post_processedE // fin_numM.
rewrite -totalZ ?expR_ge0 // -totalD //; last by move=> o; rewrite mulr_ge0 ?expR_ge0.
apply: total_le => o; have [->|fn0] := eqVneq (f o y) 0; first by rewrite !mulr0 addr0.
have fgt0 : 0 < f o y by rewrite lt_neqAle eq_sym fn0 f_ge0.
rewrite mulrA -mulrDl ler_wpmul2r ?f_ge0 // -ler_subl_addr (le_trans _ (le_positive _)) //.
by rewrite ler_add2l ler_opp2 ler_wpmul2r // ler_expR sup.
Qed.

End PostProcessing.
End Lemmas.
