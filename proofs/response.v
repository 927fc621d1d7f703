(* Randomised response: the definitions are not empty, and not trivial. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum.
From mathcomp.classical Require Import mathcomp_extra boolp classical_sets functions cardinality fsbigop.
From mathcomp.analysis Require Import reals ereal sequences exp esum.
From Expost Require Import laws odp composition.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope classical_set_scope.
Local Open Scope ring_scope.

Section Response.
Variables (R : realType) (e : R).
Hypothesis e0 : 0 <= e.

(* The true answer has e^e times the probability of the false one. *)
Definition response (x o : bool) : R := (if o == x then expR e else 1) / (1 + expR e).

Lemma response_total_gt0 : 0 < 1 + expR e.
Proof. by rewrite addr_gt0 ?ltr01 ?expR_gt0. Qed.

Lemma response_gt0 x o : 0 < response x o.
Proof. by rewrite divr_gt0 ?response_total_gt0 //; case: ifP; rewrite ?expR_gt0 ?ltr01. Qed.

Lemma response_law x : law (response x).
Proof.
have ge0 o : 0 <= response x o by exact/ltW/response_gt0.
split=> //; rewrite total_finite // big_bool /= /response -mulrDl; congr (_%:E).
have nonzero : 1 + expR e != 0 by rewrite gt_eqF ?response_total_gt0.
by case: x {ge0} => /=; rewrite ?[expR e + 1]addrC divff.
Qed.

Lemma response_odp x y : odp id (fun=> e) 0 (response x) (response y).
Proof.
apply/(odp_pointwise _ _ (response_law x) (response_law y)) => o; rewrite /response mulrA.
rewrite ler_pmul2r ?invr_gt0 ?response_total_gt0 //; have one_le : 1 <= expR e by rewrite -(expR0 R) ler_expR.
by do 2 case: ifP => _; rewrite ?mulr1 ?ler_pmulr ?expR_gt0 ?mulr_ege1.
Qed.

(* Randomised response is a mechanism in the sense of odp.v. *)
Definition responding : mechanism R (fun x y : bool => x = ~~ y) [choiceType of bool] [choiceType of bool] :=
  Mechanism response_law (fun=> e0) (lexx 0) (fun x y _ => response_odp x y).

(* Below its epsilon it keeps no guarantee with delta = 0, whatever the parts. *)
Theorem response_is_tight (K : choiceType) (part_of : bool -> K) (epsilon_of : K -> R) :
  epsilon_of (part_of true) < e -> ~ odp part_of epsilon_of 0 (response true) (response false).
Proof.
move=> below /(odp_pointwise _ _ (response_law true) (response_law false)) /(_ true).
rewrite /response /= div1r leNgt ltr_pmul2r ?invr_gt0 ?response_total_gt0 //.
by rewrite ltr_expR below.
Qed.

(* Asked once under a limit (e', 0): admitted if e <= e', and not private if e' < e. *)
Definition ask_once : adversary R := Ask responding (fun b : bool => esym (negbK b)) (fun=> Stop).

Lemma ask_once_admitted e' : e <= e' -> admitted e' 0 ask_once.
Proof. by move=> ee'; split=> //= k; exact: ee'. Qed.

(* So the bound on the worst case is needed: this game costs more than e', and its view is not (e', 0)-private. *)
Theorem ask_once_not_private e' : e' < e -> ~ dp e' 0 (views ask_once true) (views ask_once false).
Proof.
move=> below private; have lt := views_law ask_once true; have lf := views_law ask_once false.
have /(odp_pointwise _ _ lt lf) := dp_to_odp id lf private.
move=> /(_ (Tagged (fun=> view (@Stop R)) (tt : view (@Stop R)) : {o : bool & _})) /= /(_ true).
by rewrite !mulr1 /response /= div1r leNgt ltr_pmul2r ?invr_gt0 ?response_total_gt0 // ltr_expR below.
Qed.

End Response.
