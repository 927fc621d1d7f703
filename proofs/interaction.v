(* Interactive mechanisms: what their guarantee means, and the causal decomposition that it gives. *)

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

(* ---- interactions *)

Section Interaction.
Variable R : realType.

(* An interactive mechanism answers questions. reply x h q is the law of its answer to q on the database x, after the history h
   (questions and answers, the last one first). epsilon_at h is charged if it ends with h. *)
Record interaction (D : Type) (Q : Type) (A : choiceType) := Interaction {
  reply : D -> seq (Q * A) -> Q -> A -> R;
  epsilon_at : seq (Q * A) -> R;
  delta : R;
  reply_law : forall x h q, law (reply x h q);
  epsilon_ge0 : forall h, 0 <= epsilon_at h;
  delta_ge0 : 0 <= delta }.
Arguments reply {D Q A} i x h q a.
Arguments epsilon_at {D Q A} i h.
Arguments delta {D Q A} i.

Lemma addKe (r : R) (t : \bar R) : (- r%:E + (r%:E + t) = t)%E.
Proof. by rewrite addeA [(- _ + _)%E]addeC subee // add0e. Qed.

Section Decomposition.
Variables (D Q : Type) (A : choiceType) (i : interaction D Q A).
Notation history := (seq (Q * A)).
Implicit Types (x y : D) (h : history) (q : Q).

(* The probability of a history's answers, given its questions. *)
Fixpoint likelihood x h : R := if h is (q, a) :: h' then likelihood x h' * reply i x h' q a else 1.

(* An adaptive way of asking. *)
Inductive strategy : Type :=
| Quit
| Put (q : Q) (next : A -> strategy).

(* How far the likelihood on x passes e^E times that on y, summed over the transcripts of a strategy after h. *)
Fixpoint strategy_excess x y h (s : strategy) : \bar R :=
  match s with
  | Quit => (Num.max 0 (likelihood x h - expR (epsilon_at i h) * likelihood y h))%:E
  | Put q next => \esum_(a in setT) strategy_excess x y ((q, a) :: h) (next a)
  end.

(* The guarantee of an interactive mechanism holds for every way of asking. *)
Definition keeps_interactively x y : Prop := forall s, (strategy_excess x y [::] s <= (delta i)%:E)%E.

Lemma likelihood_ge0 x h : 0 <= likelihood x h.
Proof. by elim: h => [|[q a] h IH] /=; rewrite ?ler01 // mulr_ge0 // (reply_law i x h q).1. Qed.

Lemma likelihood_causal x h q : total (fun a => likelihood x ((q, a) :: h)) = (likelihood x h)%:E.
Proof.
by rewrite /= totalZ ?likelihood_ge0 ?(reply_law i x h q).2 ?mule1 // => a; exact: (reply_law i x h q).1.
Qed.

(* A core of the likelihood on x: causal, below e^E times the likelihood on y, and of mass at least 1 - delta. *)
Record core x y (c : history -> R) : Prop := Core {
  core_ge0 : forall h, 0 <= c h;
  core_le : forall h, c h <= likelihood x h;
  core_causal : forall h q, total (fun a => c ((q, a) :: h)) = (c h)%:E;
  core_below : forall h, c h <= expR (epsilon_at i h) * likelihood y h;
  core_mass : 1 - delta i <= c [::] }.

Lemma strategy_excess_ge0 x y h s : (0 <= strategy_excess x y h s)%E.
Proof. by elim: s h => [|q next IH] h /=; [rewrite lee_fin positive_ge0 | apply: esum_ge0 => a _]. Qed.

Lemma strategy_excess_le x y h s : (strategy_excess x y h s <= (likelihood x h)%:E)%E.
Proof.
elim: s h => [|q next IH] h /=; last by rewrite -(likelihood_causal x h q); apply: le_esum => a _.
by rewrite lee_fin le_maxl likelihood_ge0 ler_subl_addr ler_addl mulr_ge0 ?likelihood_ge0 ?expR_ge0.
Qed.

(* A bound at every history is a guarantee, whatever delta is: nothing is ever lost. *)
Lemma pure_keeps x y : (forall h, likelihood x h <= expR (epsilon_at i h) * likelihood y h) -> keeps_interactively x y.
Proof.
move=> pure s; suff -> : strategy_excess x y [::] s = 0%E by rewrite lee_fin delta_ge0.
elim: s [::] => [|q next IH] h /=; first by rewrite max_l // subr_le0.
by apply: esum1 => a _; exact: IH.
Qed.

(* The decomposition. The least mass that is lost after h: the worst over all ways of asking from there. *)
Definition lost x y h : R := fine (ereal_sup [set strategy_excess x y h s | s in setT]).

Section Pair.
Variables x y : D.
Notation lost := (lost x y).

Lemma lost_sup h : (lost h)%:E = ereal_sup [set strategy_excess x y h s | s in setT].
Proof.
rewrite fineK // ge0_fin_numE.
- apply: (@le_lt_trans _ _ (likelihood x h)%:E); last by rewrite ltry.
  by apply: ub_ereal_sup => _ [s _ <-]; exact: strategy_excess_le.
- by apply: (le_trans (strategy_excess_ge0 x y h Quit)); apply: ereal_sup_ub; exists Quit.
Qed.

Lemma excess_le_lost h s : (strategy_excess x y h s <= (lost h)%:E)%E.
Proof. by rewrite lost_sup; apply: ereal_sup_ub; exists s. Qed.

Lemma lost_ge0 h : 0 <= lost h.
Proof. by rewrite -lee_fin; apply: le_trans (excess_le_lost h Quit); exact: strategy_excess_ge0. Qed.

Lemma lost_le h : lost h <= likelihood x h.
Proof. by rewrite -lee_fin lost_sup; apply: ub_ereal_sup => _ [s _ <-]; exact: strategy_excess_le. Qed.

(* Some strategy comes as close to the worst as one likes. *)
Lemma nearly_worst h (t : R) : 0 < t -> exists s, ((1 - t)%:E * (lost h)%:E <= strategy_excess x y h s)%E.
Proof.
move=> t0; apply: contrapT => none; have below s : (strategy_excess x y h s <= ((1 - t) * lost h)%:E)%E.
  by rewrite leNgt; apply/negP => lt; apply: none; exists s; rewrite -EFinM ltW.
have [zero|nonzero] := eqVneq (lost h) 0.
  by apply: none; exists Quit; rewrite zero mule0 strategy_excess_ge0.
have : ((lost h)%:E <= ((1 - t) * lost h)%:E)%E.
  by rewrite lost_sup; apply: ub_ereal_sup => _ [s _ <-]; exact: below.
have pos : 0 < lost h by rewrite lt_neqAle eq_sym nonzero lost_ge0.
by apply/negP; rewrite -ltNge lte_fin gtr_pmull // ltr_subl_addr ltr_addl.
Qed.

Lemma lost_fin h q : total (fun a => lost ((q, a) :: h)) \is a fin_num.
Proof.
rewrite ge0_fin_numE; last by apply: total_ge0 => a; exact: lost_ge0.
apply: (@le_lt_trans _ _ (likelihood x h)%:E); last by rewrite ltry.
by rewrite -(likelihood_causal x h q); apply: total_le => a; exact: lost_le.
Qed.

(* The worst of what follows a question is no worse than the worst from here. *)
Lemma lost_supercausal h q : (total (fun a => lost ((q, a) :: h)) <= (lost h)%:E)%E.
Proof.
set sum := total _; have sum_fin : sum \is a fin_num by exact: lost_fin.
have nearly t : 0 < t -> t < 1 -> ((1 - t)%:E * sum <= (lost h)%:E)%E.
  move=> t0 t1; have /choice [next near] := fun a => nearly_worst ((q, a) :: h) t0.
  apply: le_trans (excess_le_lost h (Put q next)); rewrite /sum /total -esumZ.
  - by apply: le_esum => a _; exact: near.
  - by rewrite subr_ge0 ltW.
  - by move=> a; rewrite lee_fin lost_ge0.
rewrite -(fineK sum_fin) lee_fin leNgt; apply/negP => lt.
have [low high] : 0 <= lost h /\ 0 < fine sum by split; [exact: lost_ge0 | exact: le_lt_trans (lost_ge0 _) lt].
have two : 0 < 2 * fine sum by rewrite mulr_gt0 ?ltr0n.
pose t := (fine sum - lost h) / (2 * fine sum).
have t_sum : 2 * (t * fine sum) = fine sum - lost h by rewrite mulrCA -/t divfK ?gt_eqF.
have t0 : 0 < t by rewrite divr_gt0 ?subr_gt0.
have t1 : t < 1.
  by rewrite ltr_pdivr_mulr // mul1r mulr_natl mulr2n ltr_subl_addr -addrA ltr_addl ltr_paddr.
have := nearly t t0 t1; rewrite -(fineK sum_fin) -EFinM lee_fin mulrBl mul1r ler_subl_addr.
apply/negP; rewrite -ltNge; have half : t * fine sum < fine sum - lost h.
  by rewrite -t_sum mulr_natl mulr2n ltr_addl mulr_gt0.
by rewrite addrC -ltr_subr_addr.
Qed.

(* The mass that is taken away: all of lost at the root, and spread over the answers to each question. *)
Definition lost_next h q : R := fine (total (fun a => lost ((q, a) :: h))).

Lemma lost_next_le h q : lost_next h q <= lost h.
Proof. by rewrite -lee_fin fineK ?lost_fin //; exact: lost_supercausal. Qed.

Fixpoint taken h : R :=
  if h is (q, a) :: h' then
    lost h + (taken h' - lost_next h' q) / (likelihood x h' - lost_next h' q) * (likelihood x h - lost h)
  else lost h.

(* The share that is taken lies between 0 and 1. *)
Lemma share_bounds h q : lost h <= taken h <= likelihood x h ->
  0 <= (taken h - lost_next h q) / (likelihood x h - lost_next h q) <= 1.
Proof.
move=> /andP[low high]; have next_le := le_trans (lost_next_le h q) low.
have [zero|nonzero] := eqVneq (likelihood x h - lost_next h q) 0; first by rewrite zero invr0 mulr0 lexx ler01.
have pos : 0 < likelihood x h - lost_next h q by rewrite lt_neqAle eq_sym nonzero subr_ge0 (le_trans next_le).
apply/andP; split; first by apply: divr_ge0; [rewrite subr_ge0 | exact: ltW].
by rewrite ler_pdivr_mulr // mul1r ler_add2r.
Qed.

Lemma taken_bounds h : lost h <= taken h <= likelihood x h.
Proof.
elim: h => [|[q a] h IH]; first by rewrite lexx lost_le.
have /andP[s0 s1] := share_bounds q IH; move: s0 s1; rewrite [taken _]/=.
set s := _ / _; set next := (q, a) :: h => s0 s1.
have rest : 0 <= likelihood x next - lost next by rewrite subr_ge0 lost_le.
by rewrite ler_addl mulr_ge0 //= -ler_subr_addl ler_pimull.
Qed.

Lemma taken_causal h q : total (fun a => taken ((q, a) :: h)) = (taken h)%:E.
Proof.
have bounds := taken_bounds h; have /andP[s0 s1] := share_bounds q bounds; have /andP[low high] := bounds.
have next_le := le_trans (lost_next_le h q) low.
pose s := (taken h - lost_next h q) / (likelihood x h - lost_next h q).
have rest0 a : 0 <= likelihood x ((q, a) :: h) - lost ((q, a) :: h) by rewrite subr_ge0 lost_le.
rewrite (_ : total _ = total (fun a => lost ((q, a) :: h) + s * (likelihood x ((q, a) :: h) - lost ((q, a) :: h)))) //.
rewrite totalD => [|a|a]; [|exact: lost_ge0|by rewrite mulr_ge0].
rewrite totalZ // -(fineK (lost_fin h q)) -/(lost_next h q).
have rest_total : total (fun a => likelihood x ((q, a) :: h) - lost ((q, a) :: h)) = (likelihood x h - lost_next h q)%:E.
  have both := likelihood_causal x h q.
  rewrite (eq_total (g := fun a => lost ((q, a) :: h) + (likelihood x ((q, a) :: h) - lost ((q, a) :: h)))) in both;
    last by move=> a; rewrite addrC subrK.
  move: both; rewrite totalD // => [|a]; last exact: lost_ge0.
  rewrite -(fineK (lost_fin h q)) -/(lost_next h q) EFinB => <-.
  by rewrite [in RHS]addeC addKe.
rewrite rest_total -EFinM -EFinD; congr (_%:E).
have [zero|nonzero] := eqVneq (likelihood x h - lost_next h q) 0.
  rewrite zero mulr0 addr0; apply/eqP; rewrite eq_le next_le /=.
  by rewrite (le_trans high) // -subr_le0 zero.
by rewrite /s divfK // addrC subrK.
Qed.

(* thm-causal: the guarantee gives a core. *)
Theorem causal_decomposition : keeps_interactively x y -> core x y (fun h => likelihood x h - taken h).
Proof.
move=> keeps; have bounds h := andP (taken_bounds h).
have taken0 h : 0 <= taken h by exact: le_trans (lost_ge0 h) (bounds h).1.
have rest0 h : 0 <= likelihood x h - taken h by rewrite subr_ge0 (bounds h).2.
split=> // [h|h q|h|].
- by rewrite ler_subl_addr ler_addl.
- have both := likelihood_causal x h q.
  rewrite (eq_total (g := fun a => taken ((q, a) :: h) + (likelihood x ((q, a) :: h) - taken ((q, a) :: h)))) in both;
    last by move=> a; rewrite addrC subrK.
  move: both; rewrite totalD // taken_causal EFinB => <-.
  by rewrite [in RHS]addeC addKe.
- rewrite ler_subl_addr -ler_subl_addl (le_trans (le_positive _)) // -lee_fin.
  by apply: le_trans (excess_le_lost h Quit) _; rewrite lee_fin (bounds h).1.
- by rewrite /= ler_add2l ler_opp2 -lee_fin lost_sup; apply: ub_ereal_sup => _ [s _ <-]; exact: keeps.
Qed.

End Pair.
End Decomposition.
End Interaction.
