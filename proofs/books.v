(* Numbered entries: looking one up, changing one, and what that does to sums and products over all of them. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum.
From mathcomp.classical Require Import mathcomp_extra boolp classical_sets functions cardinality fsbigop.
From mathcomp.analysis Require Import reals ereal sequences exp esum.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope classical_set_scope.
Local Open Scope ring_scope.

Section Books.
Variables (R : realType) (T : Type).
Implicit Types (l : seq T) (x y : T) (n m : nat) (f : T -> R).

Fixpoint look l n : option T :=
  match l, n with [::], _ => None | x :: _, 0 => Some x | _ :: l', n'.+1 => look l' n' end.

Fixpoint put l n y : seq T :=
  match l, n with [::], _ => [::] | _ :: l', 0 => y :: l' | x :: l', n'.+1 => x :: put l' n' y end.

Lemma look_put_same l n x y : look l n = Some x -> look (put l n y) n = Some y.
Proof. by elim: l n => [|z l IH] [|n] //= /IH. Qed.

Lemma look_put_other l n m y : n != m -> look (put l n y) m = look l m.
Proof. by elim: l n m => [|z l IH] [|n] [|m] //=; rewrite eqSS => /IH. Qed.

Lemma put_put_same l n x y : put (put l n x) n y = put l n y.
Proof. by elim: l n => [|z l IH] [|n] //=; rewrite IH. Qed.

Lemma put_put_other l n m x y : n != m -> put (put l n x) m y = put (put l m y) n x.
Proof. by elim: l n m => [|z l IH] [|n] [|m] //=; rewrite eqSS => /IH ->. Qed.

Lemma look_rcons l n x y : look l n = Some x -> look (rcons l y) n = Some x.
Proof. by elim: l n => [|z l IH] [|n] //= /IH. Qed.

Lemma put_rcons l n x y z : look l n = Some x -> put (rcons l z) n y = rcons (put l n y) z.
Proof. by elim: l n => [|w l IH] [|n] //= /IH ->. Qed.

Lemma sum_put f l n x y : look l n = Some x -> \sum_(z <- put l n y) f z = \sum_(z <- l) f z - f x + f y.
Proof.
elim: l n => [|z l IH] [|n] //=; first by move=> [->]; rewrite !big_cons [f x + _]addrC addrK addrC.
by move=> /IH; rewrite !big_cons => ->; rewrite !addrA.
Qed.

Lemma sum_rcons f l x : \sum_(z <- rcons l x) f z = \sum_(z <- l) f z + f x.
Proof. by rewrite -cats1 big_cat big_seq1. Qed.

Lemma prod_put f l n x : (forall z, 0 <= f z) -> look l n = Some x ->
  exists2 rest, 0 <= rest & \prod_(z <- l) f z = rest * f x /\ forall y, \prod_(z <- put l n y) f z = rest * f y.
Proof.
move=> f0; elim: l n => [|z l IH] [|n] //=.
  move=> [->]; exists (\prod_(w <- l) f w); first exact: prodr_ge0.
  by split=> [|y]; rewrite big_cons mulrC.
move=> /IH[rest rest0 [lE putE]]; exists (f z * rest); first by rewrite mulr_ge0.
by split=> [|y]; rewrite big_cons ?lE ?putE mulrA.
Qed.

Lemma prod_rcons f l x : \prod_(z <- rcons l x) f z = \prod_(z <- l) f z * f x.
Proof. by rewrite -cats1 big_cat big_seq1. Qed.

(* If f is at most g, and nothing at x, then the sum of f leaves room for g x in the sum of g. *)
Lemma sum_open f (g : T -> R) l n x : (forall y, 0 <= f y <= g y) -> look l n = Some x -> f x = 0 ->
  \sum_(y <- l) f y + g x <= \sum_(y <- l) g y.
Proof.
move=> fg; have le y : f y <= g y by case/andP: (fg y).
elim: l n => [|y l IH] [|n] //= => [[->] fx|/IH{}IH /IH{}IH]; rewrite !big_cons.
  by rewrite fx add0r addrC ler_add2l ler_sum.
by rewrite -addrA ler_add.
Qed.

End Books.
