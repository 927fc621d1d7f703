(* Groups of people, and mechanisms on disjoint blocks of the data. *)

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

Section Combination.
Variable R : realType.
Implicit Types O K : choiceType.

(* ---- groups *)

(* Two steps: the epsilons add up; what the second step loses counts e^s times, where s bounds the first epsilon. *)
Lemma excess_chain O (E F : O -> R) (s : R) (p q r : O -> R) : (forall o, 0 <= q o) -> (forall o, E o <= s) ->
  (excess (fun o => E o + F o)%R p r <= excess E p q + (expR s)%:E * excess F q r)%E.
Proof.
move=> q0 Es; rewrite /excess -totalZ ?expR_ge0 // => [|o]; last exact: positive_ge0.
rewrite -totalD => [|o|o]; [|exact: positive_ge0|by rewrite mulr_ge0 ?expR_ge0 ?positive_ge0].
apply: total_le => o; set first := Num.max 0 (p o - expR (E o) * q o); set second := Num.max 0 (q o - _).
rewrite le_maxl addr_ge0 ?mulr_ge0 ?expR_ge0 ?positive_ge0 //=.
rewrite (@le_trans _ _ (first + expR (E o) * second)) ?ler_add2l ?ler_wpmul2r ?positive_ge0 ?ler_expR //.
have -> : p o - expR (E o + F o) * r o = (p o - expR (E o) * q o) + expR (E o) * (q o - expR (F o) * r o).
  by rewrite mulrBr addrA subrK expRD mulrA.
apply: ler_add; first exact: le_positive.
by apply: ler_wpmul2l; [exact: expR_ge0 | exact: le_positive].
Qed.

(* lem-group: laws P 0, ..., P k on databases each of which is the neighbour of the next. *)
Theorem group O K (part_of : O -> K) (epsilon_of : K -> R) (delta s : R) (P : nat -> O -> R) (k : nat) :
  (forall i, law (P i)) -> (forall o, epsilon_of (part_of o) <= s) ->
  (forall i, odp part_of epsilon_of delta (P i) (P i.+1)) ->
  odp part_of (fun l => k%:R * epsilon_of l) (delta * \sum_(i < k) expR (i%:R * s)) (P 0%N) (P k).
Proof.
move=> laws worst step; apply/hockey_stick => //; elim: k => [|k IH].
  rewrite big_ord0 mulr0 /excess (_ : total _ = 0%E) //; apply: esum1 => o _ /=.
  by rewrite mul0r expR0 mul1r subrr maxxx.
have -> : (fun l => k.+1%:R * epsilon_of l) \o part_of =
    fun o => ((fun l => k%:R * epsilon_of l) \o part_of) o + (epsilon_of \o part_of) o.
  by apply/funext => o /=; rewrite -natr1 mulrDl mul1r.
rewrite big_ord_recr /= mulrDr EFinD.
apply: (le_trans (@excess_chain _ _ _ (k%:R * s) _ (P k) _ (laws k).1 _)).
  by move=> o /=; rewrite ler_wpmul2l ?ler0n.
rewrite lee_add // [(delta * _)%R]mulrC EFinM lee_wpmul2l ?lee_fin ?expR_ge0 //.
exact/(hockey_stick _ _ _ (laws k) (laws k.+1)).
Qed.

(* From adding or removing a record to exchanging one: a group of two. *)
Corollary group_of_two O K (part_of : O -> K) (epsilon_of : K -> R) (delta s : R) (p q r : O -> R) :
  law p -> law q -> law r -> (forall o, epsilon_of (part_of o) <= s) ->
  odp part_of epsilon_of delta p q -> odp part_of epsilon_of delta q r ->
  odp part_of (fun l => 2 * epsilon_of l) (delta * (1 + expR s)) p r.
Proof.
move=> lp lq lr worst pq qr; apply/hockey_stick => //.
have -> : (fun l => 2 * epsilon_of l) \o part_of = fun o => (epsilon_of \o part_of) o + (epsilon_of \o part_of) o.
  by apply/funext => o /=; rewrite mulr_natl mulr2n.
apply: (le_trans (@excess_chain _ _ _ s _ q _ lq.1 worst)); rewrite mulrDr mulr1 EFinD lee_add //.
  exact/(hockey_stick _ _ _ lp lq).
by rewrite mulrC EFinM lee_wpmul2l ?lee_fin ?expR_ge0 //; exact/(hockey_stick _ _ _ lq lr).
Qed.

(* ---- parallel composition *)

Section Parallel.
Variables (D1 D2 : Type) (near1 : D1 -> D1 -> Prop) (near2 : D2 -> D2 -> Prop) (O1 O2 K1 K2 : choiceType).
Variables (m1 : mechanism R near1 O1 K1) (m2 : mechanism R near2 O2 K2).

(* The data are split by record: neighbours differ in one block, and are neighbours there. *)
Definition one_block (x y : D1 * D2) : Prop := (near1 x.1 y.1 /\ x.2 = y.2) \/ (x.1 = y.1 /\ near2 x.2 y.2).

Definition parallel_run (x : D1 * D2) (o : O1 * O2) : R := run m1 x.1 o.1 * run m2 x.2 o.2.
Definition parallel_part (o : O1 * O2) : K1 * K2 := (part_of m1 o.1, part_of m2 o.2).
Definition parallel_epsilon (k : K1 * K2) : R := Num.max (epsilon_of m1 k.1) (epsilon_of m2 k.2).
Definition parallel_delta : R := Num.max (delta m1) (delta m2).

Lemma run1_ge0 x o : 0 <= run m1 x o. Proof. exact: (run_law m1 x).1. Qed.
Lemma run2_ge0 x o : 0 <= run m2 x o. Proof. exact: (run_law m2 x).1. Qed.

Lemma parallel_law x : law (parallel_run x).
Proof.
have ge0 o : 0 <= parallel_run x o by rewrite mulr_ge0 ?run1_ge0 ?run2_ge0.
split=> //; rewrite total_pair // -(run_law m1 x.1).2; apply: eq_esum => o _.
by rewrite /parallel_run /= totalZ ?(run_law m2 x.2).2 ?mule1 ?run1_ge0 // => i; exact: run2_ge0.
Qed.

(* A factor that is the same on both databases leaves the gap. *)
Lemma gap_scale (c p q E E' : R) : 0 <= c -> 0 <= q -> E <= E' ->
  Num.max 0 (c * p - expR E' * (c * q)) <= c * Num.max 0 (p - expR E * q).
Proof.
move=> c0 q0 EE; rewrite le_maxl mulr_ge0 ?positive_ge0 //= mulrCA -mulrBr ler_wpmul2l //.
by rewrite (le_trans _ (le_positive _)) // ler_add2l ler_opp2 ler_wpmul2r // ler_expR.
Qed.

Lemma parallel_odp x y : one_block x y ->
  odp parallel_part parallel_epsilon parallel_delta (parallel_run x) (parallel_run y).
Proof.
move: x y => [x1 x2] [y1 y2] near; apply/hockey_stick; try exact: parallel_law.
rewrite /excess; case: near => -[/= near same].
- rewrite -{}same; apply: (@le_trans _ _ (delta m1)%:E); last by rewrite lee_fin le_maxr lexx.
  have /hockey_stick - /(_ (run_law _ _) (run_law _ _)) := keeps m1 near; apply: le_trans.
  rewrite total_pair => [|o]; last exact: positive_ge0.
  apply: le_esum => o1 _; set gap := Num.max 0 _; have gap0 : 0 <= gap by exact: positive_ge0.
  rewrite -[leRHS]mule1 -(run_law m2 x2).2 -totalZ // => [|o2]; last exact: run2_ge0.
  apply: total_le => o2; rewrite /parallel_run /= ![run m1 _ o1 * _]mulrC [leRHS]mulrC.
  by apply: gap_scale; rewrite ?run1_ge0 ?run2_ge0 // le_maxr lexx.
- rewrite -{}near; apply: (@le_trans _ _ (delta m2)%:E); last by rewrite lee_fin le_maxr lexx orbT.
  have /hockey_stick - /(_ (run_law _ _) (run_law _ _)) small := keeps m2 same.
  rewrite total_pair => [|o]; last exact: positive_ge0.
  rewrite -[leRHS]mule1 -(run_law m1 x1).2 -totalZ ?delta_ge0 // => [|o1]; last exact: run1_ge0.
  apply: le_esum => o1 _; rewrite mulrC EFinM.
  apply: le_trans (lee_wpmul2l _ small); last by rewrite lee_fin run1_ge0.
  rewrite -totalZ ?run1_ge0 // => [|o2]; last exact: positive_ge0.
  by apply: total_le => o2; apply: gap_scale; rewrite ?run1_ge0 ?run2_ge0 // le_maxr lexx orbT.
Qed.

(* lem-parallel, for two blocks; more blocks by nesting. *)
Definition parallel : mechanism R one_block [choiceType of O1 * O2] [choiceType of K1 * K2].
Proof.
apply: (Mechanism parallel_law _ _ parallel_odp).
- by move=> k; rewrite le_maxr epsilon_ge0.
- by rewrite le_maxr delta_ge0.
Defined.

End Parallel.
End Combination.
