(* Concurrent interactive composition: the ledger's rule for any number of interactive mechanisms, interleaved at will.

   A mechanism that runs in one go is an interaction that answers one question. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum.
From mathcomp.classical Require Import mathcomp_extra boolp classical_sets functions cardinality fsbigop.
From mathcomp.analysis Require Import reals ereal sequences exp esum.
From Expost Require Import laws odp composition books interaction.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope classical_set_scope.
Local Open Scope ring_scope.

Section Concurrent.
Variable R : realType.

(* An interactive mechanism with its two databases, between which it keeps its guarantee in both orders. *)
Record session := Session {
  data : Type;
  question : Type;
  reply_type : choiceType;
  talk : interaction R data question reply_type;
  databases : bool -> data;
  kept : forall b, keeps_interactively talk (databases b) (databases (~~ b));
  worst : R;
  worst_ge0 : 0 <= worst;
  worst_case : forall h, epsilon_at talk h <= worst }.

Notation history s := (seq (question s * reply_type s)).

(* ---- the books *)

Inductive state (s : session) : Type :=
| Reserved
| Talking (h : history s)
| Settled (h : history s)
| Forfeited (h : history s)
| Voided.
Arguments Reserved {s}.
Arguments Voided {s}.

Record entry := Entry { what : session; now : state what }.

Definition books := seq entry.

Definition charge (x : entry) : R :=
  match now x with Settled h => epsilon_at (talk (what x)) h | Voided => 0 | _ => worst (what x) end.

Definition charge_delta (x : entry) : R := if now x is Voided then 0 else delta (talk (what x)).

Definition used (l : books) : R := \sum_(x <- l) charge x.
Definition used_delta (l : books) : R := \sum_(x <- l) charge_delta x.

(* ---- the rule *)

Variables (e d : R).  (* the limit *)

(* What an analyst can do. A question may depend on the interaction that it is put to. *)
Inductive event : Type :=
| Reserve (s : session)
| Begin (n : nat)
| Put (n : nat) (q : forall s, option (question s))
| Settle (n : nat)
| Forfeit (n : nat)
| Void (n : nat).

Inductive answer : Type :=
| Yes
| Refused
| Answered (s : session) (a : reply_type s).

(* An event is done at once, or entry n, with interaction s and history h, answers the question q. *)
Inductive reaction : Type :=
| Done (told : answer) (l : books)
| Answers (n : nat) (s : session) (h : history s) (q : question s).

Definition fits (l : books) (s : session) : bool := (used l + worst s <= e) && (used_delta l + delta (talk s) <= d).

Definition react (ev : event) (l : books) : reaction :=
  match ev with
  | Reserve s => if fits l s then Done Yes (rcons l (Entry (@Reserved s))) else Done Refused l
  | Begin n => if look l n is Some (Entry s Reserved) then Done Yes (put l n (Entry (@Talking s [::]))) else Done Refused l
  | Put n q =>
      if look l n is Some (Entry s (Talking h)) then (if q s is Some q' then Answers n h q' else Done Refused l)
      else Done Refused l
  | Settle n => if look l n is Some (Entry s (Talking h)) then Done Yes (put l n (Entry (Settled h))) else Done Refused l
  | Forfeit n =>
      match look l n with
      | Some (Entry s (Talking h)) => Done Yes (put l n (Entry (Forfeited h)))
      | Some (Entry s Reserved) => Done Yes (put l n (Entry (@Forfeited s [::])))
      | _ => Done Refused l
      end
  | Void n => if look l n is Some (Entry s Reserved) then Done Yes (put l n (Entry (@Voided s))) else Done Refused l
  end.

Inductive analyst : Type :=
| Conclude (verdict : bool)
| Do (ev : event) (next : answer -> analyst).

Definition after (l : books) (n : nat) (s : session) (h : history s) (q : question s) (a : reply_type s) : books :=
  put l n (Entry (Talking ((q, a) :: h))).

(* The probability that the verdict is true, where the databases are those of b. *)
Fixpoint wins (b : bool) (c : analyst) (l : books) : \bar R :=
  match c with
  | Conclude verdict => (verdict%:R)%:E
  | Do ev next =>
      match react ev l with
      | Done told l' => wins b (next told) l'
      | Answers n s h q =>
          \esum_(a in setT) ((reply (talk s) (databases s b) h q a)%:E * wins b (next (Answered a)) (after l n h q a))%E
      end
  end.

Definition within (l : books) : Prop := used l <= e /\ used_delta l <= d.

(* ---- the proof *)

Lemma reply_ge0 s b h q a : 0 <= reply (talk s) (databases s b) h q a.
Proof. exact: (reply_law (talk s) _ h q).1. Qed.

Lemma wins_bounds b c l : (0 <= wins b c l <= 1)%E.
Proof.
elim: c l => [v|ev next IH] l /=; first by rewrite !lee_fin ler0n lern1; case: v.
case: react => [told l'|n s h q] //; apply/andP; split.
  by apply: esum_ge0 => a _; rewrite mule_ge0 ?lee_fin ?reply_ge0 //; case/andP: (IH (Answered a) (after l n h q a)).
rewrite -(reply_law (talk s) (databases s b) h q).2; apply: le_esum => a _.
by rewrite -[leRHS]mule1 lee_wpmul2l ?lee_fin ?reply_ge0 //; case/andP: (IH (Answered a) (after l n h q a)).
Qed.

Definition win b c l : R := fine (wins b c l).

Lemma winE b c l : (win b c l)%:E = wins b c l.
Proof.
by have /andP[w0 w1] := wins_bounds b c l; rewrite fineK // ge0_fin_numE // (le_lt_trans w1) // ltry.
Qed.

Lemma win_bounds b c l : 0 <= win b c l <= 1.
Proof. by have := wins_bounds b c l; rewrite -winE !lee_fin. Qed.

Section Proof.
Variable b : bool.

(* The core of each interaction's likelihood on the databases of b: causal_decomposition. *)
Definition core_of (s : session) (h : history s) : R :=
  likelihood (talk s) (databases s b) h - taken (talk s) (databases s b) (databases s (~~ b)) h.

Lemma core_ofP s : core (talk s) (databases s b) (databases s (~~ b)) (@core_of s).
Proof. exact: causal_decomposition (@kept s b). Qed.

(* What an entry contributes to the likelihood of the view, to its core, to epsilon and to delta. *)
Definition factor (side : bool) (x : entry) : R :=
  match now x with
  | Talking h | Settled h | Forfeited h => likelihood (talk (what x)) (databases (what x) side) h
  | _ => 1
  end.
Definition core_factor (x : entry) : R :=
  match now x with Talking h | Settled h | Forfeited h => core_of h | _ => 1 end.
Definition reached (x : entry) : R :=
  match now x with Talking h | Settled h | Forfeited h => epsilon_at (talk (what x)) h | _ => 0 end.
Definition begun (x : entry) : R :=
  match now x with Talking _ | Settled _ | Forfeited _ => delta (talk (what x)) | _ => 0 end.

Definition view_law side (l : books) : R := \prod_(x <- l) factor side x.
Definition view_core (l : books) : R := \prod_(x <- l) core_factor x.
Definition left_delta (l : books) : R := d - \sum_(x <- l) begun x.

Lemma factor_ge0 side x : 0 <= factor side x.
Proof. by case: x => s [|h|h|h|]; rewrite /factor /= ?likelihood_ge0 ?ler01. Qed.

Lemma core_factor_bounds x : 0 <= core_factor x <= factor b x.
Proof.
by case: x => s [|h|h|h|]; rewrite /core_factor /factor /= ?ler01 ?lexx // (core_ge0 (core_ofP s)) (core_le (core_ofP s)).
Qed.

Lemma core_factor_ge0 x : 0 <= core_factor x.
Proof. by case/andP: (core_factor_bounds x). Qed.

Lemma core_factor_below x : core_factor x <= expR (reached x) * factor (~~ b) x.
Proof.
by case: x => s [|h|h|h|]; rewrite /core_factor /reached /factor /= ?expR0 ?mulr1 //; exact: core_below (core_ofP s) h.
Qed.

Lemma reached_le x : 0 <= reached x <= charge x.
Proof. by case: x => s [|h|h|h|]; rewrite /reached /charge /= ?epsilon_ge0 ?worst_ge0 ?worst_case ?lexx. Qed.

Lemma begun_le x : begun x <= charge_delta x.
Proof. by case: x => s [|h|h|h|]; rewrite /begun /charge_delta /= ?delta_ge0 ?lexx. Qed.

Lemma view_law_ge0 side l : 0 <= view_law side l.
Proof. by apply: prodr_ge0 => x _; exact: factor_ge0. Qed.

Lemma view_core_ge0 l : 0 <= view_core l.
Proof. by apply: prodr_ge0 => x _; exact: core_factor_ge0. Qed.

Lemma view_core_le l : view_core l <= view_law b l.
Proof. by apply: ler_prod => x _; exact: core_factor_bounds. Qed.

Lemma left_delta_ge0 l : within l -> 0 <= left_delta l.
Proof. by move=> [_ wd]; rewrite subr_ge0 (le_trans _ wd) //; apply: ler_sum => x _; exact: begun_le. Qed.

(* At the end the core is within e^e, because what was reached is at most what was charged. *)
Lemma view_core_below l : within l -> view_core l <= expR e * view_law (~~ b) l.
Proof.
move=> [we _]; apply: (@le_trans _ _ (expR (\sum_(x <- l) reached x) * view_law (~~ b) l)).
  elim: l {we} => [|x l IH]; rewrite /view_core /view_law ?big_nil ?big_cons ?expR0 ?mulr1 //.
  rewrite expRD mulrACA ler_pmul ?core_factor_ge0 ?core_factor_below //; exact: view_core_ge0.
rewrite ler_wpmul2r ?view_law_ge0 // ler_expR (le_trans _ we) //; apply: ler_sum => x _.
by case/andP: (reached_le x).
Qed.

(* The bound that holds from any books on: what remains of delta is charged to the core, and what the core lacks is lost. *)
Definition bounded c l : Prop :=
  win b c l * view_law b l + view_core l <=
  expR e * (win (~~ b) c l * view_law (~~ b) l) + view_law b l + view_core l * left_delta l.

(* Changing an entry into one with the same factors changes nothing. *)
Lemma same_step l n x y : look l n = Some x ->
  (forall side, factor side y = factor side x) -> core_factor y = core_factor x -> begun y = begun x ->
  (forall side, view_law side (put l n y) = view_law side l) /\
  view_core (put l n y) * left_delta (put l n y) - view_core (put l n y) <= view_core l * left_delta l - view_core l.
Proof.
move=> at_n same_law same_core same_begun; rewrite /view_law /view_core /left_delta (sum_put _ _ at_n) same_begun subrK.
split=> [side|].
  by have [rest _ [-> ->]] := prod_put (factor_ge0 side) at_n; rewrite same_law.
by have [rest _ [-> ->]] := prod_put core_factor_ge0 at_n; rewrite same_core.
Qed.

(* An interaction that begins takes its delta from what remains. *)
Lemma begin_step l n s y : look l n = Some (Entry (@Reserved s)) -> within (put l n y) ->
  (forall side, factor side y = 1) -> core_factor y = @core_of s [::] -> begun y = delta (talk s) ->
  (forall side, view_law side (put l n y) = view_law side l) /\
  view_core (put l n y) * left_delta (put l n y) - view_core (put l n y) <= view_core l * left_delta l - view_core l.
Proof.
move=> at_n ok law1 coreE begunE; split=> [side|].
  by rewrite /view_law; have [rest _ [-> ->]] := prod_put (factor_ge0 side) at_n; rewrite law1.
have left0 := left_delta_ge0 ok.
have leftE : left_delta l = left_delta (put l n y) + delta (talk s).
  by rewrite /left_delta (sum_put _ _ at_n) begunE subr0 opprD addrA subrK.
rewrite {}leftE; move: (left_delta _) left0 => rem rem0.
rewrite /view_core; have [rest rest0 [-> ->]] := prod_put core_factor_ge0 at_n.
rewrite coreE [core_factor (Entry Reserved)]/core_factor /= mulr1.
have /andP[_] := core_factor_bounds y; rewrite coreE law1 => k1.
have := core_mass (core_ofP s); move: (core_of _) k1 => k k1 mass.
rewrite -mulrA -mulrBr -[X in _ <= _ - X]mulr1 -mulrBr ler_wpmul2l // (@le_trans _ _ (rem - k)) //.
  by rewrite ler_add2r ler_pimull.
by rewrite -addrA ler_add2l ler_oppl opprB.
Qed.

Lemma put_within l n x y : look l n = Some x -> charge y <= charge x -> charge_delta y <= charge_delta x ->
  within l -> within (put l n y).
Proof.
move=> at_n le le_delta [we wd]; rewrite /within /used /used_delta !(sum_put _ _ at_n); split.
- by rewrite (le_trans _ we) // -addrA ger_addl addrC subr_le0.
- by rewrite (le_trans _ wd) // -addrA ger_addl addrC subr_le0.
Qed.

(* An event that publishes nothing. *)
Lemma done_step ev l told l' : within l -> react ev l = Done told l' ->
  within l' /\ (forall side, view_law side l' = view_law side l) /\
  view_core l' * left_delta l' - view_core l' <= view_core l * left_delta l - view_core l.
Proof.
have stays : within l -> within l /\ (forall side, view_law side l = view_law side l) /\
    view_core l * left_delta l - view_core l <= view_core l * left_delta l - view_core l by [].
move=> ok; case: ev => [s|n|n q|n|n|n] /=.
- case: ifP => [/andP[fe fd]|_] [_ <-]; last exact: stays.
  split; first by split; rewrite /used /used_delta sum_rcons.
  by rewrite /view_law /view_core /left_delta sum_rcons !prod_rcons addr0 !mulr1; split=> // side; rewrite prod_rcons mulr1.
- case at_n : (look l n) => [[s [|h|h|h|]]|] [_ <-]; try exact: stays.
  have ok' : within (put l n (Entry (@Talking s [::]))) by apply: (put_within at_n).
  by split=> //; exact: begin_step at_n ok' _ _ _.
- case: (look l n) => [[s [|h|h|h|]]|]; [| case: (q s) => [q'|] //= | | | |]; by move=> [_ <-]; exact: stays.
- case at_n : (look l n) => [[s [|h|h|h|]]|] [_ <-]; try exact: stays.
  by split; [apply: (put_within at_n) => //; exact: worst_case | exact: (same_step at_n)].
- case at_n : (look l n) => [[s [|h|h|h|]]|] [_ <-]; try exact: stays.
  + have ok' : within (put l n (Entry (@Forfeited s [::]))) by apply: (put_within at_n).
    by split=> //; exact: begin_step at_n ok' _ _ _.
  + by split; [apply: (put_within at_n) | exact: (same_step at_n)].
- case at_n : (look l n) => [[s [|h|h|h|]]|] [_ <-]; try exact: stays.
  by split; [apply: (put_within at_n) => //; rewrite ?worst_ge0 ?delta_ge0 | exact: (same_step at_n)].
Qed.

(* Where an answer comes from. *)
Definition source (r : reaction) : option (nat * entry) := if r is Answers n s h _ then Some (n, Entry (Talking h)) else None.

Lemma source_look ev l n x : source (react ev l) = Some (n, x) -> look l n = Some x.
Proof.
case: ev => [s|m|m q|m|m|m] /=; first by case: ifP.
- by case: (look l m) => [[s [|h|h|h|]]|].
- by case at_m : (look l m) => [[s [|h|h|h|]]|] //; case: (q s) => [q'|] //= [<- <-].
- by case: (look l m) => [[s [|h|h|h|]]|].
- by case: (look l m) => [[s [|h|h|h|]]|].
- by case: (look l m) => [[s [|h|h|h|]]|].
Qed.

Lemma trade (w u c x c' x' : R) : w + c' <= u + x' -> x' - c' <= x - c -> w + c <= u + x.
Proof.
move=> before le; rewrite -ler_subr_addr -addrA (@le_trans _ _ (u + (x' - c'))) ?ler_add2l //.
by rewrite addrA ler_subr_addr.
Qed.

Lemma bound_holds c l : within l -> bounded c l.
Proof.
elim: c l => [v|ev next IH] l ok; rewrite /bounded.
- have extra : 0 <= view_core l * left_delta l by rewrite mulr_ge0 ?view_core_ge0 ?left_delta_ge0.
  rewrite /win /=; case: v => /=; rewrite ?mul1r ?mul0r ?mulr0 ?add0r.
    by rewrite addrC -[leLHS]addr0 ler_add // ler_add // view_core_below.
  by rewrite -[leLHS]addr0 ler_add // view_core_le.
case r : (react ev l) => [told l'|n s h q].
- have [ok' [same le]] := done_step ok r.
  have := IH told l' ok'; rewrite /bounded /win /= r !same => bound.
  exact: trade bound le.
have at_n : look l n = Some (Entry (Talking h)) by apply: (@source_look ev); rewrite r.
pose la a := after l n h q a; pose rep side a := reply (talk s) (databases s side) h q a.
have rep0 side a : 0 <= rep side a by exact: reply_ge0.
have win0 side a : 0 <= win side (next (Answered a)) (la a) by case/andP: (win_bounds side (next (Answered a)) (la a)).
have law_after side a : view_law side (la a) = view_law side l * rep side a.
  by rewrite /view_law; have [rest _ [-> ->]] := prod_put (factor_ge0 side) at_n; rewrite -mulrA.
have core_total : total (fun a => view_core (la a)) = (view_core l)%:E.
  rewrite /view_core; have [rest rest0 [-> after_core]] := prod_put core_factor_ge0 at_n.
  under eq_total do rewrite after_core.
  rewrite totalZ // => [|a]; last exact: core_factor_ge0.
  by rewrite (core_causal (core_ofP s)).
have left_after a : left_delta (la a) = left_delta l by rewrite /left_delta (sum_put _ _ at_n) subrK.
have win_total side : total (fun a => win side (next (Answered a)) (la a) * view_law side (la a)) =
    (win side (Do ev next) l * view_law side l)%:E.
  under eq_total do rewrite law_after mulrCA.
  rewrite totalZ ?view_law_ge0 // => [|a]; last by rewrite mulr_ge0.
  rewrite mulrC EFinM winE /= r; congr (_ * _)%E; apply: eq_esum => a _.
  by rewrite -winE mulrC EFinM.
have step a : win b (next (Answered a)) (la a) * view_law b (la a) + view_core (la a) <=
    expR e * (win (~~ b) (next (Answered a)) (la a) * view_law (~~ b) (la a)) + view_law b l * rep b a +
    left_delta l * view_core (la a).
  rewrite -(left_after a) -law_after [left_delta _ * _]mulrC; apply: IH.
  by apply: (put_within at_n).
have law0 side a : 0 <= view_law side (la a) by exact: view_law_ge0.
have core0 a : 0 <= view_core (la a) by exact: view_core_ge0.
have left0 := left_delta_ge0 ok.
rewrite -lee_fin; have := total_le step.
rewrite !totalD => [|a|a|a|a|a|a]; rewrite ?addr_ge0 ?mulr_ge0 ?expR_ge0 ?view_law_ge0 //.
rewrite !totalZ ?expR_ge0 ?view_law_ge0 // => [|a]; last by rewrite mulr_ge0.
by rewrite !win_total core_total (reply_law (talk s) _ h q).2 mule1 -!EFinM -!EFinD [left_delta _ * _]mulrC.
Qed.

End Proof.

(* thm-ledger: whatever an analyst does, and however interactions are interleaved, what is published is (e, d)-private. *)
Theorem concurrent_private b c : 0 <= e -> 0 <= d ->
  (wins b c [::] <= (expR e)%:E * wins (~~ b) c [::] + d%:E)%E.
Proof.
move=> e0 d0; have ok : within [::] by rewrite /within /used /used_delta !big_nil.
have := bound_holds b c ok; rewrite /bounded /view_law /view_core /left_delta !big_nil !mulr1 mul1r subr0.
by rewrite addrAC ler_add2r -!winE -EFinM -EFinD lee_fin.
Qed.

End Concurrent.
