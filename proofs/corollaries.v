(* The composition theorem for randomised adversaries, for rounds as lists, and with a filter that halts. *)

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

Section Corollaries.
Variable R : realType.
Implicit Types (b : bool) (e d : R).

(* ---- a randomised adversary: its coins are part of the view *)

Section Randomised.
Variables (C : choiceType) (coins : C -> R).
Hypothesis coins_law : law coins.

Lemma coins_odp : odp (fun=> tt) (fun=> 0) 0 coins coins.
Proof. by apply/(odp_pointwise _ _ coins_law coins_law) => c; rewrite expR0 mul1r. Qed.

(* Coins are a mechanism that sees no data. *)
Definition coin : mechanism R (fun _ _ : unit => True) _ _ :=
  Mechanism (fun=> coins_law) (fun=> lexx 0) (lexx 0) (fun _ _ _ => coins_odp).

(* First the coins are drawn; they decide which adversary plays. An adversary may ask for more coins at any time. *)
Definition randomised (a : C -> adversary R) : adversary R := @Ask R unit _ _ _ coin (fun=> tt) (fun=> I) a.

Lemma randomised_views a b c (v : view (a c)) :
  views (randomised a) b (Tagged (fun c => view (a c)) v) = coins c * views (a c) b v.
Proof. by []. Qed.

Theorem composition_randomised (a : C -> adversary R) b e d : 0 <= e -> 0 <= d ->
  (forall c, admitted e d (a c)) -> dp e d (views (randomised a) b) (views (randomised a) (~~ b)).
Proof. by move=> e0 d0 each; apply: composition_both => //=; split=> // c; rewrite !subr0. Qed.

End Randomised.

(* ---- the ODP filter (Algorithm 6): what does not fit ends the game *)

Fixpoint filtered e d (a : adversary R) : adversary R :=
  match a with
  | Stop => Stop
  | Ask _ _ _ _ m _ near next =>
      if `[< forall k, epsilon_of m k <= e >] && (delta m <= d)
      then Ask m near (fun o => filtered (e - epsilon_of m (part_of m o)) (d - delta m) (next o))
      else Stop
  end.

Lemma filtered_admitted e d a : admitted e d (filtered e d a).
Proof. by elim: a e d => [|D nb O K m x near next IH] e d //=; case: ifP => //= /andP[/asboolP]. Qed.

(* Whatever an adversary asks for, the filter keeps it private. *)
Theorem filter_valid a b e d : 0 <= e -> 0 <= d ->
  dp e d (views (filtered e d a) b) (views (filtered e d a) (~~ b)).
Proof. by move=> e0 d0; apply: composition_both => //; exact: filtered_admitted. Qed.

(* The filter does not get in the way of an adversary who keeps to the rule. *)
Lemma filtered_id e d a : admitted e d a -> filtered e d a = a.
Proof.
elim: a e d => [|D nb O K m x near next IH] e d //= [/asboolP -> ->] /= rest.
by congr (Ask m near _); apply/funext => o; exact: IH.
Qed.

(* ---- the rounds of Algorithm 1 as lists *)

Section Rounds.
Variables (D : Type) (neighbours : D -> D -> Prop) (O K : choiceType).

Record round := Round {
  asked : mechanism R neighbours O K;
  databases : bool -> D;
  are_near : forall b, neighbours (databases b) (databases (~~ b)) }.

(* What the adversary does after each list of outputs. *)
Variable choose : seq O -> round.

(* The probability of the outputs s, and what they are charged, after the outputs h. *)
Fixpoint outputs_law b (h s : seq O) : R :=
  if s is o :: s' then run (asked (choose h)) (databases (choose h) b) o * outputs_law b (rcons h o) s' else 1.

Fixpoint epsilon_spent (h s : seq O) : R :=
  if s is o :: s' then epsilon_of (asked (choose h)) (part_of (asked (choose h)) o) + epsilon_spent (rcons h o) s' else 0.

Fixpoint delta_spent (h s : seq O) : R :=
  if s is o :: s' then delta (asked (choose h)) + delta_spent (rcons h o) s' else 0.

(* The law of the view of n rounds: lists of n outputs. *)
Definition rounds b (n : nat) (s : seq O) : R := if size s == n then outputs_law b [::] s else 0.

(* The same adversary as a tree. *)
Fixpoint tree (n : nat) (h : seq O) : adversary R :=
  if n is n'.+1 then Ask (asked (choose h)) (are_near (choose h)) (fun o => tree n' (rcons h o)) else Stop.

Fixpoint listed (n : nat) (h : seq O) : view (tree n h) -> seq O :=
  if n is n'.+1 then fun v => tag v :: listed (tagged v) else fun=> [::].

Lemma listed_size n h (v : view (tree n h)) : size (listed v) = n.
Proof. by elim: n h v => [|n IH] h //= v; rewrite IH. Qed.

Lemma listed_inj n h : injective (@listed n h).
Proof.
elim: n h => [|n IH] h; first by move=> [] [].
by move=> [o v] [o' v'] /= [oo']; case: _ / oo' in v' * => /IH ->.
Qed.

Lemma listed_onto n h s : size s = n -> exists v : view (tree n h), listed v = s.
Proof.
elim: n h s => [|n IH] h [|o s] // => [_|]; first by exists tt.
by move=> [/(IH (rcons h o)) [v <-]]; exists (Tagged (fun o => view (tree n (rcons h o))) v).
Qed.

(* The law of lists is the tree's. *)
Lemma tree_views n h b v : views (tree n h) b v = outputs_law b h (listed v).
Proof. by elim: n h v => [|n IH] h v //=; rewrite IH. Qed.

Lemma rounds_tree n b (S : set (seq O)) : pr (rounds b n) S = pr (views (tree n [::]) b) [set v | S (listed v)].
Proof.
rewrite /pr (esumID [set s | size s = n]) => [|s _]; last first.
  rewrite lee_fin /rounds; case: eqP => // /(listed_onto [::]) [v <-].
  by rewrite -tree_views views_ge0.
rewrite [X in (_ + X)%E]esum1 ?adde0; last by move=> s [_ /eqP/negbTE]; rewrite /rounds => ->.
rewrite (@reindex_esum _ _ _ [set v : view (tree n [::]) | S (listed v)] _ (@listed n [::])).
  by apply: eq_esum => v _; rewrite tree_views /rounds listed_size eqxx.
split; first by move=> v Sv; split=> //; exact: listed_size.
- by move=> v w _ _; exact: listed_inj.
- by move=> s [Ss /(listed_onto [::]) [v vs]]; exists v => //=; rewrite vs.
Qed.

(* The rule, as Algorithm 1 has it: after every list of outputs the next guarantee fits what is left. *)
Definition rounds_admitted e d (n : nat) : Prop := forall s, (size s < n)%N ->
  (forall k, epsilon_of (asked (choose s)) k <= e - epsilon_spent [::] s) /\
  delta (asked (choose s)) <= d - delta_spent [::] s.

Lemma tree_admitted_from e d n h :
  (forall s, (size s < n)%N -> (forall k, epsilon_of (asked (choose (h ++ s))) k <= e - epsilon_spent h s) /\
     delta (asked (choose (h ++ s))) <= d - delta_spent h s) ->
  admitted e d (tree n h).
Proof.
elim: n h e d => [|n IH] h e d fits //=; have := fits [::] isT; rewrite /= cats0 !subr0 => -[worst dfits].
split=> // o; apply: IH => s sn; have := fits (o :: s) sn.
by rewrite /= -cat_rcons !opprD !addrA.
Qed.

(* Theorem 7 for lists. *)
Theorem composition_rounds b e d n : 0 <= e -> 0 <= d -> rounds_admitted e d n ->
  dp e d (rounds b n) (rounds (~~ b) n).
Proof.
move=> e0 d0 fits S; rewrite !rounds_tree; apply: composition_both => //.
by apply: tree_admitted_from => s sn; exact: fits.
Qed.

End Rounds.
End Corollaries.
