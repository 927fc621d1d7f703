(* Laws on discrete sets, and sums of families of non-negative numbers.

   A set of outputs is any type with a choice function: finite, countable or larger. Only countably many outputs have positive
   probability, and the sum of a family is the supremum of its finite sums, so that nothing has to be said about order or
   convergence. Sums are extended real numbers: +oo is a value, not an error. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum.
From mathcomp.classical Require Import mathcomp_extra boolp classical_sets functions cardinality fsbigop.
From mathcomp.analysis Require Import reals ereal sequences exp esum.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope classical_set_scope.
Local Open Scope ring_scope.

(* ---- definitions *)

Section Definitions.
Variable R : realType.

(* The sum of all values of a function. *)
Definition total (O : choiceType) (f : O -> R) : \bar R := \esum_(o in setT) (f o)%:E.

(* The probability of a set S of outputs, where m is the probability of each. *)
Definition pr (O : choiceType) (m : O -> R) (S : set O) : \bar R := \esum_(o in S) (m o)%:E.

(* A law: probabilities are not negative and sum to one. *)
Definition law (O : choiceType) (m : O -> R) : Prop := (forall o, 0 <= m o) /\ total m = 1%E.

End Definitions.

(* ---- sums *)

Section Sums.
Local Open Scope ereal_scope.
Variable R : realType.
Implicit Types O I : choiceType.

Lemma esumZ_le O (S : set O) (a : O -> \bar R) (c : R) : (0 <= c)%R -> (forall i, 0 <= a i) ->
  \esum_(i in S) (c%:E * a i) <= c%:E * \esum_(i in S) a i.
Proof.
move=> c0 a0; apply: ub_ereal_sup => _ [A [finA AS] <-].
rewrite -ge0_mule_fsumr // lee_wpmul2l // ?lee_fin //.
by apply: ereal_sup_ub; exists A.
Qed.

(* A constant factor leaves the sum. *)
Lemma esumZ O (S : set O) (a : O -> \bar R) (c : R) : (0 <= c)%R -> (forall i, 0 <= a i) ->
  \esum_(i in S) (c%:E * a i) = c%:E * \esum_(i in S) a i.
Proof.
move=> c0 a0; apply/eqP; rewrite eq_le esumZ_le //=.
have [->|cn0] := eqVneq c 0%R; first by rewrite mul0e esum_ge0 // => i _; rewrite mul0e.
rewrite -lee_pdivl_mull ?lt_neqAle ?c0 1?eq_sym ?cn0 //.
rewrite (le_trans _ (esumZ_le _ _ _)) ?invr_ge0 //; last by move=> i; rewrite mule_ge0 // lee_fin.
by apply: le_esum => i _; rewrite muleA -EFinM mulVf // mul1e.
Qed.

(* The order of two sums does not matter. *)
Lemma esum_swap O I (a : O -> I -> \bar R) : (forall o i, 0 <= a o i) ->
  \esum_(o in setT) \esum_(i in setT) a o i = \esum_(i in setT) \esum_(o in setT) a o i.
Proof.
move=> a0; rewrite !esum_esum //; apply: (@reindex_esum _ _ _ _ _ (fun k : I * O => (k.2, k.1))); split=> //.
- by move=> [i o] [j p] _ _ /= [-> ->].
- by move=> [o i] _; exists (i, o).
Qed.

(* A sum over dependent pairs, one coordinate after the other. *)
Lemma esum_tagged I (T : I -> choiceType) (F : {i : I & T i} -> \bar R) : (forall v, 0 <= F v) ->
  \esum_(v in [set: {i : I & T i}]) F v = \esum_(i in setT) \esum_(t in [set: T i]) F (Tagged T t).
Proof.
move=> F0; pose J i : set {i : I & T i} := [set v | tag v = i].
rewrite (_ : \esum_(i in setT) _ = \esum_(i in setT) \esum_(v in J i) F v); last first.
  apply: eq_esum => i _; symmetry; apply: reindex_esum; split=> [t _ //|t t' _ _|[j t] /= ji].
  - by move/eqP; rewrite eq_Tagged => /eqP.
  - by case: _ / ji; exists t.
rewrite esum_esum //; apply: (@reindex_esum _ _ _ (setT `*`` J) setT (fun k => k.2)); split=> //.
- by move=> [i v] [j w]; rewrite !inE /= => -[_ <-] [_ <-] ->.
- by move=> v _; exists (tag v, v).
Qed.

(* Where all terms but one are zero. *)
Lemma esum_single O (o : O) (a : O -> \bar R) : 0 <= a o -> (forall i, i != o -> a i = 0) -> \esum_(i in setT) a i = a o.
Proof.
move=> a0 rest; rewrite -(esum_set1 a0) [RHS]esum_mkcond; apply: eq_esum => i _.
by case: ifPn => // io; apply: rest; apply: contraNN io => /eqP->; rewrite inE.
Qed.

Lemma esum_finite (O : finType) (a : O -> \bar R) : (forall o, 0 <= a o) -> \esum_(o in setT) a o = \sum_o a o.
Proof.
move=> a0; have fin : finite_set [set: O] by exact: finite_finset.
rewrite esum_fset // fsbig_finite //=; apply: perm_big.
apply: uniq_perm => [||o]; rewrite ?finmap.fset_uniq ?index_enum_uniq //.
by rewrite in_fset_set // mem_index_enum mem_setT.
Qed.

Lemma esum_bool (a : bool -> \bar R) : (forall o, 0 <= a o) -> \esum_(o in setT) a o = a true + a false.
Proof. by move=> a0; rewrite esum_finite // big_bool. Qed.

Lemma esum_option O (a : option O -> \bar R) : (forall o, 0 <= a o) ->
  \esum_(o in [set: option O]) a o = a None + \esum_(o in [set: O]) a (Some o).
Proof.
move=> a0; rewrite (esumID [set None]) // !setTI esum_set1 //; congr (_ + _).
rewrite (_ : ~` [set None] = [set Some o | o in setT]); first by rewrite esum_image // => o o' _ _ [].
by apply/seteqP; split=> [[o _|/(_ erefl) //]|_ [o _ <-] //]; exists o.
Qed.

(* ---- totals of real functions *)

Lemma total_ge0 O (f : O -> R) : (forall o, (0 <= f o)%R) -> 0 <= total f.
Proof. by move=> f0; apply: esum_ge0 => o _; rewrite lee_fin. Qed.

Lemma total_le O (f g : O -> R) : (forall o, (f o <= g o)%R) -> total f <= total g.
Proof. by move=> fg; apply: le_esum => o _; rewrite lee_fin. Qed.

Lemma eq_total O (f g : O -> R) : (forall o, f o = g o) -> total f = total g.
Proof. by move=> fg; apply: eq_esum => o _; rewrite fg. Qed.

Lemma totalD O (f g : O -> R) : (forall o, (0 <= f o)%R) -> (forall o, (0 <= g o)%R) ->
  total (fun o => f o + g o)%R = total f + total g.
Proof. by move=> f0 g0; rewrite /total -esumD // => o _; rewrite lee_fin. Qed.

Lemma totalZ O (c : R) (f : O -> R) : (0 <= c)%R -> (forall o, (0 <= f o)%R) ->
  total (fun o => c * f o)%R = c%:E * total f.
Proof. by move=> c0 f0; rewrite /total -esumZ // => o; rewrite lee_fin. Qed.

Lemma total_tagged I (T : I -> choiceType) (f : {i : I & T i} -> R) : (forall v, (0 <= f v)%R) ->
  total f = \esum_(i in [set: I]) total (fun t : T i => f (Tagged T t)).
Proof. by move=> f0; rewrite /total esum_tagged // => v; rewrite lee_fin. Qed.

Lemma total_pair O I (f : O * I -> R) : (forall v, (0 <= f v)%R) ->
  total f = \esum_(o in [set: O]) total (fun i => f (o, i)).
Proof.
move=> f0; rewrite /total esum_esum => [|o i]; last by rewrite lee_fin.
rewrite (_ : [set: O] `*`` (fun=> setT) = setT); last by apply/seteqP; split.
by apply: eq_esum => -[o i].
Qed.

Lemma total_finite (O : finType) (f : O -> R) : (forall o, (0 <= f o)%R) -> total f = (\sum_o f o)%:E.
Proof. by move=> f0; rewrite /total esum_finite ?sumEFin // => o; rewrite lee_fin. Qed.

Lemma term_le_total O (f : O -> R) o : (forall o, (0 <= f o)%R) -> (f o)%:E <= total f.
Proof.
move=> f0; rewrite -[leLHS](@esum_set1 _ _ o (fun o => (f o)%:E)) ?lee_fin // esum_mkcond.
by apply: le_esum => i _; case: ifP; rewrite ?lee_fin.
Qed.

Lemma total_le0 O (f : O -> R) : (forall o, (0 <= f o)%R) -> total f <= 0 -> forall o, f o = 0%R.
Proof.
move=> f0 t0 o; apply/eqP; rewrite eq_le f0 andbT -lee_fin.
exact: le_trans (term_le_total o f0) t0.
Qed.

(* ---- probabilities of sets *)

Lemma pr_total O (m : O -> R) (S : set O) : pr m S = total (fun o => if o \in S then m o else 0%R).
Proof. by rewrite /pr esum_mkcond; apply: eq_esum => o _; case: ifP. Qed.

Lemma pr_setT O (m : O -> R) : pr m setT = total m.
Proof. by []. Qed.

Lemma pr_ge0 O (m : O -> R) S : (forall o, (0 <= m o)%R) -> 0 <= pr m S.
Proof. by move=> m0; apply: esum_ge0 => o _; rewrite lee_fin. Qed.

Lemma pr_le1 O (m : O -> R) S : law m -> pr m S <= 1.
Proof. by move=> [m0 <-]; rewrite pr_total; apply: total_le => o; case: ifP. Qed.

Lemma pr_fin O (m : O -> R) S : law m -> pr m S \is a fin_num.
Proof.
by move=> lm; rewrite ge0_fin_numE ?(le_lt_trans (pr_le1 S lm)) ?ltry // pr_ge0 //; case: lm.
Qed.

(* The parts of a set sum up to the set, also when each part has a weight of its own. *)
Lemma esum_by_part (O K : choiceType) (part : O -> K) (c : K -> R) (m : O -> R) (S : set O) :
  (forall k, (0 <= c k)%R) -> (forall o, (0 <= m o)%R) ->
  \esum_(k in setT) ((c k)%:E * pr m (S `&` [set o | part o = k])) = \esum_(o in S) (c (part o) * m o)%:E.
Proof.
move=> c0 m0; pose f (k : K) (o : O) : \bar R := (c k * m o)%:E.
rewrite (eq_esum (b := fun k => \esum_(o in S `&` [set o | part o = k]) f k o)); last first.
  by move=> k _; rewrite -esumZ // => o; rewrite lee_fin.
rewrite esum_esum; last by move=> k o; rewrite lee_fin mulr_ge0.
symmetry; rewrite (@reindex_esum _ _ _ (setT `*`` (fun k => S `&` [set o | part o = k])) S (fun k => k.2)).
  by apply: eq_esum => -[k o] /= [_ [_ <-]].
split; first by move=> [k o] /= [_ []].
- by move=> [k o] [k' o']; rewrite !inE /= => -[_ [_ <-]] [_ [_ <-]] ->.
- by move=> o So; exists (part o, o).
Qed.

End Sums.
