(* Why delta does not depend on the part: a rule that charged the delta of the part that came out would not be private. *)

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

Section Fallacy.
Variable R : realType.

(* Definition 5 for every part: a delta of its own for the subsets of each part. *)
Definition keeps_by_part (D : Type) (nb : D -> D -> Prop) (O K : choiceType) (m : mechanism R nb O K) (delta_of : K -> R) :=
  forall x y, nb x y -> forall k (S : set O), (forall o, S o -> part_of m o = k) ->
    (pr (run m x) S <= (expR (epsilon_of m k))%:E * pr (run m y) S + (delta_of k)%:E)%E.

(* The false rule: like admitted, but the delta of the part that came out is charged, and the rest refunded. *)
Fixpoint admitted_by_part (e d : R) (a : adversary R) : Prop :=
  match a with
  | Stop => True
  | Ask _ _ _ _ m _ _ next => exists delta_of,
      [/\ keeps_by_part m delta_of, forall k, epsilon_of m k <= e, forall k, delta_of k <= d
        & forall o, admitted_by_part (e - epsilon_of m (part_of m o)) (d - delta_of (part_of m o)) (next o)]
  end.

Section Reveal.
Variable d : R.
Hypotheses (d0 : 0 < d) (d1 : d < 1).

(* A mechanism that reveals its database with probability d, and publishes nothing otherwise. *)
Definition reveal (x : bool) (o : option bool) : R := if o is Some y then (if y == x then d else 0) else 1 - d.

Lemma reveal_ge0 x o : 0 <= reveal x o.
Proof. by case: o => [y|] /=; [case: ifP => // _; exact: ltW | rewrite subr_ge0 ltW]. Qed.

Lemma reveal_law x : law (reveal x).
Proof.
split; first exact: reveal_ge0.
rewrite /total esum_option => [|o]; last by rewrite lee_fin reveal_ge0.
rewrite esum_bool => [|o]; last by rewrite lee_fin reveal_ge0.
by case: x => /=; rewrite -!EFinD ?addr0 ?add0r subrK.
Qed.

Lemma reveal_total x (f : option bool -> R) : (forall o, 0 <= f o) ->
  total (fun o => reveal x o * f o) = (d * f (Some x) + (1 - d) * f None)%:E.
Proof.
move=> f0; have rf0 o : (0 <= (reveal x o * f o)%:E)%E by rewrite lee_fin mulr_ge0 ?reveal_ge0.
rewrite /total esum_option // esum_bool //.
by case: x rf0 => _ /=; rewrite -!EFinD !mul0r ?addr0 ?add0r [(_ + d * _)%R]addrC.
Qed.

Arguments reveal : simpl never.

(* Its delta sits on one part: where nothing is published the guarantee holds with delta = 0. *)
Definition price (published : bool) : R := if published then d else 0.

Lemma reveal_odp x y : odp isSome (fun=> 0) d (reveal x) (reveal y).
Proof.
apply/hockey_stick; [exact: reveal_law..|]; rewrite /excess /= expR0.
apply: (@le_trans _ _ (total (fun o => reveal x o * (isSome o)%:R))); last first.
  by rewrite reveal_total => [|o]; rewrite ?ler0n //= mulr1 mulr0 addr0.
apply: total_le => -[z|] /=; rewrite ?mulr1 ?mulr0 mul1r; last by rewrite /reveal subrr maxxx.
by rewrite le_maxl reveal_ge0 /= ler_subl_addr ler_addl reveal_ge0.
Qed.

Definition revealing : mechanism R (fun x y : bool => x = ~~ y) _ _ :=
  Mechanism reveal_law (fun=> lexx 0) (ltW d0) (fun x y _ => reveal_odp x y).

Lemma revealing_by_part : keeps_by_part revealing price.
Proof.
move=> x y _ k S inpart; rewrite /= expR0 mul1e; case: k inpart => inpart /=; last first.
  rewrite adde0 !pr_total; apply: total_le => -[z|] //; case: ifPn => // z_in.
  by move: z_in; rewrite inE => /inpart.
apply: (@le_trans _ _ d%:E); last by rewrite lee_addr // pr_ge0 //; exact: reveal_ge0.
rewrite -[d]mulr1 -[(d * 1)%R]addr0 -(mulr0 (1 - d)).
rewrite -(@reveal_total x (fun o => (isSome o)%:R)) => [|o]; last exact: ler0n.
rewrite pr_total; apply: total_le => -[z|] /=; rewrite ?mulr1 ?mulr0; case: ifPn => // z_in; first exact: reveal_ge0.
by move: z_in; rewrite inE => /inpart.
Qed.

(* Ask again until it has revealed. *)
Fixpoint retry (n : nat) : adversary R :=
  if n is n'.+1 then @Ask R bool _ _ _ revealing id (fun=> esym (negbK _)) (fun o => if o then Stop else retry n') else Stop.

Lemma retry_by_part n : admitted_by_part 0 d (retry n).
Proof.
elim: n => [|n IH] //=; exists price; split=> [||k|].
- exact: revealing_by_part.
- by move=> k; exact: lexx.
- by case: k => /=; [exact: lexx | exact: ltW].
- by move=> [o|] //=; rewrite !subr0.
Qed.

(* The views in which the database turned out to be false. *)
Fixpoint caught (n : nat) : set (view (retry n)) :=
  match n with
  | 0 => fun=> False
  | n'.+1 => fun v =>
      (if tag v as o return view (if o then Stop else retry n') -> Prop then fun=> tag v = Some false else @caught n') (tagged v)
  end.

Lemma pr_caught n b : pr (views (retry n) b) (@caught n) = (if b then 0 else 1 - (1 - d) ^+ n)%:E.
Proof.
elim: n => [|n IH].
  by rewrite expr0 subrr if_same pr_total; apply: esum1 => v _; case: ifP => //; rewrite inE.
rewrite pr_ask; pose f (o : option bool) : R := if o is Some y then (y == false)%:R else if b then 0 else 1 - (1 - d) ^+ n.
have f0 o : 0 <= f o.
  case: o => [y|] /=; first exact: ler0n.
  by case: ifP => // _; rewrite subr_ge0 exprn_ile1 ?subr_ge0 ?ltW // ltr_subl_addr ltr_addl.
transitivity (total (fun o => reveal b o * f o)).
  apply: eq_esum => -[y|] _; rewrite EFinM; congr (_ * _)%E; last exact: IH.
  rewrite pr_total /total (@esum_single _ _ tt) => [|//|[] //]; last first.
    by case: ifP => _; rewrite lee_fin ?ler01.
  by congr (_%:E); case: ifPn; rewrite ?inE ?notin_set /=; [case=> -> | case: y].
rewrite reveal_total //=; congr (_%:E); case: b {IH f f0} => /=; rewrite ?mulr0 ?addr0 // mulr1 mulrBr mulr1 exprS.
by rewrite addrA [d + (1 - d)]addrC subrK.
Qed.

End Reveal.

(* The rule with part-wise delta is not private, whatever 0 < d < 1 (ex-part-dependent-delta). *)
Theorem refunding_delta_fails (d : R) : 0 < d -> d < 1 ->
  exists a, admitted_by_part 0 d a /\ ~ dp 0 d (views a false) (views a true).
Proof.
move=> d0 d1; exists (retry d0 d1 2); split; first exact: retry_by_part.
move=> /(_ (@caught d d0 d1 2)); rewrite !pr_caught mule0 add0e lee_fin => claim.
suff : d < 1 - (1 - d) ^+ 2 by rewrite ltNge claim.
rewrite -subr_gt0; have -> : 1 - (1 - d) ^+ 2 - d = d * (1 - d).
  by rewrite -[X in _ = X * _](subKr 1 d) mulrBl mul1r -expr2 addrAC.
by rewrite mulr_gt0 ?subr_gt0.
Qed.

(* It gets worse with every round: n of them find the database out with probability 1 - (1-d)^n. *)
Theorem refunding_delta_reveals (d : R) (n : nat) : 0 < d -> d < 1 ->
  exists (a : adversary R) (S : set (view a)), [/\ admitted_by_part 0 d a,
    pr (views a false) S = (1 - (1 - d) ^+ n)%:E & pr (views a true) S = 0%E].
Proof.
by move=> d0 d1; exists (retry d0 d1 n), (@caught d d0 d1 n); rewrite !pr_caught; split=> //; exact: retry_by_part.
Qed.

End Fallacy.
