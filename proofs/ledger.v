(* The ledger's rule with reservations in flight: any number of mechanisms run at once, and deliver in any order.

   A job is a mechanism with its two databases. The ledger reserves the worst case of a job, draws its output when the job
   begins, keeps the output to itself, and delivers it when the job is settled, perhaps long after and in another order.
   The theorem says that all an analyst can conclude is (e, d)-private, because what was delivered, in the order of delivery,
   is the view of an adversary that keeps to the rule of Algorithm 1. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum.
From mathcomp.classical Require Import mathcomp_extra boolp classical_sets functions cardinality fsbigop.
From mathcomp.analysis Require Import reals ereal sequences exp esum.
From Expost Require Import laws odp composition books.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope classical_set_scope.
Local Open Scope ring_scope.

Section Ledger.
Variable R : realType.

Record job := Job {
  data : Type;
  neighbours : data -> data -> Prop;
  output : choiceType;
  label : choiceType;
  mech : mechanism R neighbours output label;
  databases : bool -> data;
  are_near : forall b, neighbours (databases b) (databases (~~ b));
  worst : R;
  worst_ge0 : 0 <= worst;
  worst_case : forall k, epsilon_of mech k <= worst }.

Definition output_law (j : job) (b : bool) : output j -> R := run (mech j) (databases j b).
Arguments output_law : clear implicits.

(* ---- the books *)

(* The states of an entry. A job that has begun may hold its output already, unseen (Some), or draw it when it is delivered
   (None); the theorem late_or_early says that nobody can tell which. *)
Inductive state (j : job) : Type :=
| Reserved
| Begun (drawn : option (output j))
| Settled (o : output j)
| Forfeited
| Voided.
Arguments Reserved {j}.
Arguments Forfeited {j}.
Arguments Voided {j}.

Record entry := Entry { what : job; now : state what }.

Definition books := seq entry.

(* What an entry counts: the part that came out if it is settled, nothing if it was voided, else the worst case. *)
Definition charge (x : entry) : R :=
  match now x with
  | Settled o => epsilon_of (mech (what x)) (part_of (mech (what x)) o)
  | Voided => 0
  | _ => worst (what x)
  end.

(* Delta is counted in full unless the entry was voided. *)
Definition charge_delta (x : entry) : R := if now x is Voided then 0 else delta (mech (what x)).

Definition used (l : books) : R := \sum_(x <- l) charge x.
Definition used_delta (l : books) : R := \sum_(x <- l) charge_delta x.

(* ---- the rule *)

Variables (e d : R).  (* the limit *)

(* What an analyst can do. Entries are named by their number. *)
Inductive event : Type :=
| Reserve (j : job)
| Begin (n : nat)
| Settle (n : nat)
| Forfeit (n : nat)
| Void (n : nat).

(* What the analyst is told. *)
Inductive answer : Type :=
| Yes
| Refused
| Delivered (j : job) (o : output j).

(* An event leads to an answer and new books, perhaps by way of a draw. *)
Inductive reaction : Type :=
| Done (told : answer) (l : books)
| Draw (j : job) (then_ : output j -> answer * books).

Definition fits (l : books) (j : job) : bool := (used l + worst j <= e) && (used_delta l + delta (mech j) <= d).

(* early: is the output drawn when the job begins? *)
Definition react (early : bool) (ev : event) (l : books) : reaction :=
  match ev with
  | Reserve j => if fits l j then Done Yes (rcons l (Entry (@Reserved j))) else Done Refused l
  | Begin n =>
      if look l n is Some (Entry j Reserved) then
        if early then Draw (fun o : output j => (Yes, put l n (Entry (Begun (Some o)))))
        else Done Yes (put l n (Entry (@Begun j None)))
      else Done Refused l
  | Settle n =>
      match look l n with
      | Some (Entry j (Begun (Some o))) => Done (Delivered o) (put l n (Entry (Settled o)))
      | Some (Entry j (Begun None)) => Draw (fun o : output j => (Delivered o, put l n (Entry (Settled o))))
      | _ => Done Refused l
      end
  | Forfeit n =>
      match look l n with
      | Some (Entry j Reserved) | Some (Entry j (Begun _)) => Done Yes (put l n (Entry (@Forfeited j)))
      | _ => Done Refused l
      end
  | Void n =>
      if look l n is Some (Entry j Reserved) then Done Yes (put l n (Entry (@Voided j))) else Done Refused l
  end.

(* An analyst acts on what was answered so far, and comes to a conclusion in the end. *)
Inductive analyst : Type :=
| Conclude (verdict : bool)
| Do (ev : event) (next : answer -> analyst).

(* The probability that the verdict is true, where the databases are those of b. *)
Fixpoint wins (early b : bool) (c : analyst) (l : books) : \bar R :=
  match c with
  | Conclude verdict => (verdict%:R)%:E
  | Do ev next =>
      match react early ev l with
      | Done told l' => wins early b (next told) l'
      | Draw j then_ => \esum_(o in setT) ((output_law j b o)%:E * wins early b (next (then_ o).1) (then_ o).2)%E
      end
  end.

(* ---- the invariant *)

Definition within (l : books) : Prop := used l <= e /\ used_delta l <= d.

(* The books that an event can lead to. *)
Definition leads_to (r : reaction) (l' : books) : Prop :=
  match r with Done _ l => l' = l | Draw j then_ => exists o, l' = (then_ o).2 end.

Lemma charge_ge0 x : 0 <= charge x.
Proof. by case: x => j [|o|o||]; rewrite /charge /= ?worst_ge0 ?epsilon_ge0. Qed.

Lemma charge_delta_ge0 x : 0 <= charge_delta x.
Proof. by case: x => j [|o|o||]; rewrite /charge_delta /= ?delta_ge0. Qed.

(* Nothing that happens to an entry later makes it count more. *)
Lemma put_within l n x y : look l n = Some x -> charge y <= charge x -> charge_delta y <= charge_delta x ->
  within l -> within (put l n y).
Proof.
move=> at_n le le_delta [we wd]; rewrite /within /used /used_delta !(sum_put _ _ at_n); split.
- by rewrite (le_trans _ we) // -addrA ger_addl addrC subr_le0.
- by rewrite (le_trans _ wd) // -addrA ger_addl addrC subr_le0.
Qed.

(* The sum of what was settled and of the worst cases of what is open stays within the limit, whatever happens. *)
Theorem invariant early ev l l' : within l -> leads_to (react early ev l) l' -> within l'.
Proof.
move=> ok; case: ev => [j|n|n|n|n] /=.
- by case: ifP => [/andP[fe fd]|_] /= ->; [split; rewrite /used /used_delta sum_rcons | exact: ok].
- case at_n : (look l n) => [[j [|o|o||]]|] /=; try by move=> ->.
  by case: early => /= [[o]|] ->; apply: (put_within at_n).
- case at_n : (look l n) => [[j [|[o|]|o||]]|] /=; try by move=> ->.
  + by move=> ->; apply: (put_within at_n) => //; exact: worst_case.
  + by move=> [o ->]; apply: (put_within at_n) => //; exact: worst_case.
- by case at_n : (look l n) => [[j [|o|o||]]|] /= -> //; apply: (put_within at_n).
- case at_n : (look l n) => [[j [|o|o||]]|] /=; try by move=> ->.
  by move=> ->; apply: (put_within at_n) => //; rewrite ?worst_ge0 ?delta_ge0.
Qed.

(* ---- early or late *)

Lemma output_law_ge0 j b o : 0 <= output_law j b o.
Proof. exact: (run_law (mech j) _).1. Qed.

Lemma wins_ge0 early b c l : (0 <= wins early b c l)%E.
Proof.
elim: c l => [v|ev next IH] l /=; first by rewrite lee_fin ler0n.
by case: react => [told l'|j then_] //; apply: esum_ge0 => o _; rewrite mule_ge0 // lee_fin output_law_ge0.
Qed.

Lemma wins_le1 early b c l : (wins early b c l <= 1)%E.
Proof.
elim: c l => [v|ev next IH] l /=; first by rewrite lee_fin lern1; case: v.
case: react => [told l'|j then_] //; rewrite -(run_law (mech j) (databases j b)).2.
by apply: le_esum => o _; rewrite -[leRHS]mule1 lee_wpmul2l // lee_fin output_law_ge0.
Qed.

(* A draw that nobody looks at changes nothing. *)
Lemma unseen_draw j b early b' c l : (\esum_(o in setT) ((output_law j b o)%:E * wins early b' c l) = wins early b' c l)%E.
Proof.
have fin : wins early b' c l \is a fin_num.
  by rewrite ge0_fin_numE ?wins_ge0 // (le_lt_trans (wins_le1 _ _ _ _)) // ltry.
rewrite -(fineK fin) (eq_esum (b := fun o => (fine (wins early b' c l))%:E * (output_law j b o)%:E)%E); last first.
  by move=> o _; rewrite muleC.
rewrite esumZ ?fine_ge0 ?wins_ge0 // => [|o]; last by rewrite lee_fin output_law_ge0.
by rewrite [X in (_ * X)%E](run_law (mech j) (databases j b)).2 mule1.
Qed.

(* Two sums over outputs, in the other order. *)
Lemma swap_draws j j' b (f : output j -> output j' -> \bar R) : (forall o o', 0 <= f o o')%E ->
  (\esum_(o in setT) ((output_law j b o)%:E * \esum_(o' in setT) ((output_law j' b o')%:E * f o o')) =
   \esum_(o' in setT) ((output_law j' b o')%:E * \esum_(o in setT) ((output_law j b o)%:E * f o o')))%E.
Proof.
move=> f0; have pf0 o o' : (0 <= (output_law j' b o')%:E * f o o')%E by rewrite mule_ge0 // lee_fin output_law_ge0.
under eq_esum do rewrite -esumZ ?output_law_ge0 //.
rewrite esum_swap => [|o o']; last by rewrite mule_ge0 // lee_fin output_law_ge0.
apply: eq_esum => o' _; rewrite -esumZ ?output_law_ge0 // => [|o]; last by rewrite mule_ge0 // lee_fin output_law_ge0.
by apply: eq_esum => o _; rewrite muleCA.
Qed.

(* What the output of entry n, drawn but unseen, can change: only what happens when n is settled. *)
Section Unseen.
Variables (early : bool) (n : nat) (j : job).

Definition holds (o : output j) (l : books) : books := put l n (Entry (Begun (Some o))).

Definition later (o : output j) (r : reaction) : reaction :=
  match r with Done told l => Done told (holds o l) | Draw j' then_ => Draw (fun o' => ((then_ o').1, holds o (then_ o').2)) end.

Definition undrawn (l : books) : Prop := look l n = Some (Entry (@Begun j None)).

Lemma used_holds o l : undrawn l -> used (holds o l) = used l.
Proof. by move=> at_n; rewrite /used (sum_put _ _ at_n) subrK. Qed.

Lemma used_delta_holds o l : undrawn l -> used_delta (holds o l) = used_delta l.
Proof. by move=> at_n; rewrite /used_delta (sum_put _ _ at_n) subrK. Qed.

Lemma react_unseen ev l : undrawn l ->
  [\/ (forall o, react early ev (holds o l) = later o (react early ev l)) /\
        forall l', leads_to (react early ev l) l' -> undrawn l',
      exists told l', (forall o, react early ev (holds o l) = Done told l') /\ react early ev l = Done told l'
    | react early ev l = Draw (fun o : output j => (Delivered o, put l n (Entry (Settled o)))) /\
      forall o, react early ev (holds o l) = Done (Delivered o) (put l n (Entry (Settled o)))].
Proof.
move=> at_n; have held o : look (holds o l) n = Some (Entry (Begun (Some o))) by exact: look_put_same at_n.
have other o m : n != m -> look (holds o l) m = look l m by move=> nm; exact: look_put_other.
have keep m y : n != m -> undrawn (put l m y) by move=> nm; rewrite /undrawn look_put_other // eq_sym.
have swap o m y : n != m -> put (holds o l) m y = holds o (put l m y) by exact: put_put_other.
case: ev => [j'|m|m|m|m] /=.
- constructor 1; split=> [o|l']; rewrite /fits ?used_holds ?used_delta_holds //; case: ifP => //= _.
  + by rewrite /holds (put_rcons _ _ at_n).
  + by move=> ->; exact: look_rcons.
  + by move=> ->.
- constructor 1; have [<-|nm] := eqVneq n m; first by rewrite at_n; split=> [o|l' ->] //; rewrite held.
  split=> [o|l']; [rewrite other //|]; case: (look l m) => [[j' [|o'|o'||]]|] //=; try by move=> ->.
  + by case: early => /=; [congr Draw; apply/funext => o' /= |]; rewrite swap.
  + by case: early => /= [[o']|] ->; exact: keep.
- have [<-|nm] := eqVneq n m.
    by constructor 3; rewrite at_n; split=> // o; rewrite held /holds put_put_same.
  constructor 1; split=> [o|l']; [rewrite other //|]; case: (look l m) => [[j' [|[o'|]|o'||]]|] //=; try by move=> ->.
  + by rewrite swap.
  + by congr Draw; apply/funext => o' /=; rewrite swap.
  + by move=> ->; exact: keep.
  + by move=> [o' ->]; exact: keep.
- have [<-|nm] := eqVneq n m.
    constructor 2; exists Yes, (put l n (Entry (@Forfeited j))); rewrite at_n; split=> // o.
    by rewrite held /holds put_put_same.
  constructor 1; split=> [o|l']; [rewrite other //|]; case: (look l m) => [[j' [|o'|o'||]]|] //=; try by move=> ->.
  + by rewrite swap.
  + by rewrite swap.
  + by move=> ->; exact: keep.
  + by move=> ->; exact: keep.
- constructor 1; have [<-|nm] := eqVneq n m; first by rewrite at_n; split=> [o|l' ->] //; rewrite held.
  split=> [o|l']; [rewrite other //|]; case: (look l m) => [[j' [|o'|o'||]]|] //=; try by move=> ->.
  + by rewrite swap.
  + by move=> ->; exact: keep.
Qed.

(* Drawing now what is delivered later, or never, makes no difference. *)
Lemma draw_now b c l : undrawn l ->
  (\esum_(o in setT) ((output_law j b o)%:E * wins early b c (holds o l)) = wins early b c l)%E.
Proof.
elim: c l => [v|ev next IH] l at_n /=; first exact: (unseen_draw j b early b (Conclude v) l).
have [[same stays]|[told [l' [same ->]]]|[-> same]] := react_unseen ev at_n.
- case: (react early ev l) same stays => [told l'|j' then_] same stays.
    by under eq_esum do rewrite same /=; apply: IH; exact: stays.
  under eq_esum do rewrite same /=; rewrite swap_draws => [|o o']; last exact: wins_ge0.
  by apply: eq_esum => o' _; rewrite IH //; apply: stays; exists o'.
- by under eq_esum do rewrite same; exact: unseen_draw.
- by apply: eq_esum => o _; rewrite same.
Qed.

End Unseen.

(* An output that is drawn when the job begins has the same law as one drawn when it is delivered. *)
Theorem late_or_early b c l : wins true b c l = wins false b c l.
Proof.
elim: c l => [v|ev next IH] l //=; case: ev next IH => [j|n|n|n|n] next IH /=.
- by case: ifP.
- case at_n : (look l n) => [[j []]|] //=.
  pose l' := put l n (Entry (@Begun j None)).
  have und : undrawn n j l' by exact: look_put_same at_n.
  rewrite -(IH Yes l') -(draw_now true b (next Yes) und); apply: eq_esum => o _.
  by rewrite /holds /l' put_put_same.
- case: (look l n) => [[j [|[o|]|o||]]|] //=.
  by apply: eq_esum => o _; rewrite IH.
- by case: (look l n) => [[j []]|].
- by case: (look l n) => [[j []]|].
Qed.

(* ---- in the order of delivery it is Algorithm 1 *)

(* The adversary that asks when something is delivered, and the views after which the verdict is true. *)
Fixpoint delivery (c : analyst) (l : books) : {a : adversary R & set (view a)} :=
  match c with
  | Conclude verdict => existT (fun a => set (view a)) Stop (fun=> is_true verdict)
  | Do ev next =>
      match react false ev l with
      | Done told l' => delivery (next told) l'
      | Draw j then_ =>
          let after o := delivery (next (then_ o).1) (then_ o).2 in
          existT (fun a => set (view a)) (Ask (mech j) (@are_near j) (fun o => tag (after o)))
            (fun v => tagged (after (tag v)) (tagged v))
      end
  end.

Theorem delivery_views b c l : wins false b c l = pr (views (tag (delivery c l)) b) (tagged (delivery c l)).
Proof.
elim: c l => [v|ev next IH] l /=.
  rewrite pr_total /total (@esum_single _ _ tt) => [|//|[] //]; last by case: ifP => _; rewrite lee_fin ?ler01.
  by case: v; case: ifPn; rewrite ?inE ?notin_set.
case: react => [told l'|j then_] //=; rewrite (@pr_ask _ _ _ _ _ _ _ (@are_near j)).
by apply: eq_esum => o _; rewrite IH.
Qed.

(* What was settled so far, and its delta. *)
Definition settled_charge (x : entry) : R := if now x is Settled _ then charge x else 0.
Definition settled_charge_delta (x : entry) : R := if now x is Settled _ then charge_delta x else 0.
Definition settled (l : books) : R := \sum_(x <- l) settled_charge x.
Definition settled_delta (l : books) : R := \sum_(x <- l) settled_charge_delta x.

Lemma settled_charge_bounds x : 0 <= settled_charge x <= charge x.
Proof. by case: x => j [|o|o||]; rewrite /settled_charge /= ?charge_ge0 ?lexx. Qed.

Lemma settled_charge_delta_bounds x : 0 <= settled_charge_delta x <= charge_delta x.
Proof. by case: x => j [|o|o||]; rewrite /settled_charge_delta /= ?charge_delta_ge0 ?lexx. Qed.

Definition open (x : entry) : bool := if now x is (Reserved | Begun _) then true else false.

Lemma grows_put l n x y : look l n = Some x -> open x ->
  settled l <= settled (put l n y) /\ settled_delta l <= settled_delta (put l n y).
Proof.
move=> at_n open_x; rewrite /settled /settled_delta !(sum_put _ _ at_n).
have [-> ->] : settled_charge x = 0 /\ settled_charge_delta x = 0.
  by rewrite /settled_charge /settled_charge_delta; move: open_x; rewrite /open; case: (now x).
have /andP[ye _] := settled_charge_bounds y; have /andP[yd _] := settled_charge_delta_bounds y.
by rewrite !subr0 !ler_addl.
Qed.

Lemma admitted_mono (a : adversary R) (e1 d1 e2 d2 : R) :
  e1 <= e2 -> d1 <= d2 -> admitted e1 d1 a -> admitted e2 d2 a.
Proof.
elim: a e1 d1 e2 d2 => [|D nb O K m x near next IH] e1 d1 e2 d2 le_e le_d //= [worst fit rest].
split=> [k||o]; [exact: le_trans (worst k) le_e | exact: le_trans fit le_d |].
by apply: IH (rest o); rewrite ler_add2r.
Qed.

(* Every delivery fits what is left, because its worst case was reserved. *)
Theorem delivery_admitted c l : within l -> admitted (e - settled l) (d - settled_delta l) (tag (delivery c l)).
Proof.
elim: c l => [v|ev next IH] l ok //=.
have after l' told : leads_to (react false ev l) l' ->
    settled l <= settled l' /\ settled_delta l <= settled_delta l' ->
    admitted (e - settled l) (d - settled_delta l) (tag (delivery (next told) l')).
  move=> leads [le_e le_d]; apply: admitted_mono (IH told l' (invariant ok leads)); by rewrite ler_add2l ler_opp2.
case: ev next IH after => [j|n|n|n|n] next IH /=.
- case: ifP => _ after; apply: after => //.
  by rewrite /settled /settled_delta !sum_rcons !addr0.
- by case at_n : (look l n) => [[j [|o|o||]]|] /= after; apply: after => //; exact: grows_put at_n _.
- case at_n : (look l n) => [[j [|[o|]|o||]]|] /= after; try by apply: after => //; exact: grows_put at_n _.
  have [we wd] := ok.
  have room : settled l + worst j <= e.
    exact: le_trans (sum_open settled_charge_bounds at_n erefl) we.
  have room_delta : settled_delta l + delta (mech j) <= d.
    exact: le_trans (sum_open settled_charge_delta_bounds at_n erefl) wd.
  split=> [k||o]; rewrite ?ler_subr_addl //.
    by apply: le_trans room; rewrite ler_add2l worst_case.
  have := IH (Delivered o) _ (@invariant false (Settle n) l _ ok _).
  move=> /(_ (put l n (Entry (Settled o)))); rewrite /= at_n /settled /settled_delta !(sum_put _ _ at_n) !subr0.
  by rewrite !opprD !addrA; apply; exists o.
- by case at_n : (look l n) => [[j [|o|o||]]|] /= after; apply: after => //; exact: grows_put at_n _.
- by case at_n : (look l n) => [[j [|o|o||]]|] /= after; apply: after => //; exact: grows_put at_n _.
Qed.

(* Whatever an analyst does, and in whatever order jobs are begun, settled, forfeited and voided: what is published is
   (e, d)-differentially private (thm-ledger, for mechanisms that run in one go). *)
Theorem ledger_private b c : 0 <= e -> 0 <= d ->
  (wins true b c [::] <= (expR e)%:E * wins true (~~ b) c [::] + d%:E)%E.
Proof.
move=> e0 d0; rewrite !late_or_early !delivery_views; apply: composition_both => //.
have := @delivery_admitted c [::]; rewrite /within /used /used_delta /settled /settled_delta !big_nil !subr0.
by apply.
Qed.

End Ledger.
