(* Theorem 7 for outputs in any measurable space.

   The guarantee is stated for measurable functions f with values between 0 and 1 in the place of sets; sets are the functions
   that are 0 or 1. The adversary comes to a conclusion in the end, and its probability is an integral of integrals; that
   the inner ones are measurable functions of the output is assumed of the game (well_posed). *)

From mathcomp Require Import all_ssreflect ssralg ssrnum.
From mathcomp.classical Require Import mathcomp_extra boolp classical_sets functions cardinality fsbigop.
From mathcomp.analysis Require Import reals ereal topology normedtype sequences exp measure lebesgue_measure.
From mathcomp.analysis Require Import numfun lebesgue_integral.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory numFieldTopology.Exports numFieldNormedType.Exports.
Local Open Scope classical_set_scope.
Local Open Scope ring_scope.

Section Measurable.
Variable R : realType.

(* Output differential privacy of two measures; E is the epsilon of the part of each output. *)
Definition odp_measurable (dT : measure_display) (T : measurableType dT) (E : T -> R) (delta : R)
    (p q : {measure set T -> \bar R}) : Prop :=
  forall f : T -> \bar R, measurable_fun setT f -> (forall o, 0 <= f o <= 1)%E ->
    (\int[p]_o f o <= delta%:E + \int[q]_o ((expR (E o))%:E * f o))%E.

(* In particular for sets. *)
Lemma odp_measurable_set (dT : measure_display) (T : measurableType dT) (E : T -> R) (delta : R)
    (p q : {measure set T -> \bar R}) (S : set T) : measurable S -> odp_measurable E delta p q ->
  (p S <= delta%:E + \int[q]_(o in S) (expR (E o))%:E)%E.
Proof.
move=> mS /(_ (fun o => (\1_S o)%:E)) claim; rewrite -[p S](_ : (\int[p]_o (\1_S o)%:E)%E = _); last first.
  by rewrite integral_indic // setIT.
apply: (le_trans (claim _ _)).
- by apply/EFin_measurable_fun; exact: measurable_fun_indic.
- by move=> o; rewrite indicE; case: (o \in S); rewrite !lee_fin ?lexx ?ler01.
rewrite lee_add2l // [leRHS]integral_mkcond (eq_integral ((fun o => (expR (E o))%:E) \_ S)) // => o _.
by rewrite /patch indicE; case: ifP; rewrite ?mule1 ?mule0.
Qed.

Record mechanism (D : Type) (neighbours : D -> D -> Prop) (dT : measure_display) (T : measurableType dT) := Mechanism {
  run : D -> {measure set T -> \bar R};
  epsilon_at : T -> R;
  delta : R;
  run_mass : forall x, run x setT = 1%E;
  epsilon_measurable : measurable_fun setT epsilon_at;
  keeps : forall x y, neighbours x y -> odp_measurable epsilon_at delta (run x) (run y) }.
Arguments run {D neighbours dT T} m x.
Arguments epsilon_at {D neighbours dT T} m o.
Arguments delta {D neighbours dT T} m.

Inductive adversary : Type :=
| Conclude (verdict : bool)
| Ask (D : Type) (neighbours : D -> D -> Prop) (dT : measure_display) (T : measurableType dT)
      (m : mechanism neighbours T) (x : bool -> D) (near : forall b, neighbours (x b) (x (~~ b))) (next : T -> adversary).

(* The probability that the verdict is true. *)
Fixpoint wins (b : bool) (a : adversary) : \bar R :=
  match a with
  | Conclude verdict => (verdict%:R)%:E
  | Ask _ _ _ _ m x _ next => \int[run m (x b)]_o wins b (next o)
  end.

Fixpoint well_posed (a : adversary) : Prop :=
  match a with
  | Conclude _ => True
  | Ask _ _ _ _ _ _ _ next => (forall b, measurable_fun setT (fun o => wins b (next o))) /\ forall o, well_posed (next o)
  end.

Fixpoint admitted (e d : R) (a : adversary) : Prop :=
  match a with
  | Conclude _ => True
  | Ask _ _ _ _ m _ _ next =>
      [/\ forall o, epsilon_at m o <= e, delta m <= d & forall o, admitted (e - epsilon_at m o) (d - delta m) (next o)]
  end.

Lemma expR_ge0 (x : R) : 0 <= expR x.
Proof. exact/ltW/expR_gt0. Qed.

Lemma measurable_expR : measurable_fun setT (@expR R).
Proof. by apply: continuous_measurable_fun => x; exact: continuous_expR. Qed.

Lemma wins_ge0 b a : (0 <= wins b a)%E.
Proof.
elim: a => [v|D nb dT T m x near next IH] /=; first by rewrite lee_fin ler0n.
by apply: integral_ge0 => o _; exact: IH.
Qed.

Lemma wins_le1 b a : well_posed a -> (wins b a <= 1)%E.
Proof.
elim: a => [v|D nb dT T m x near next IH] /=; first by rewrite lee_fin lern1; case: v.
move=> [meas well]; apply: (@le_trans _ _ (\int[run m (x b)]_o (cst 1%E o))%E).
  apply: ge0_le_integral => //; try exact: measurable_fun_cst.
  - by move=> o _; exact: wins_ge0.
  - by move=> o _; rewrite lee_fin ler01.
  - by move=> o _; apply: IH; exact: well.
by rewrite integral_cst // mul1e run_mass.
Qed.

Theorem composition_measurable a b e d : 0 <= e -> 0 <= d -> well_posed a -> admitted e d a ->
  (wins b a <= (expR e)%:E * wins (~~ b) a + d%:E)%E.
Proof.
elim: a e d => [v|D nb dT T m x near next IH] e d e0 d0 /=.
  move=> _ _; apply: (@le_trans _ _ ((expR e)%:E * (v%:R)%:E)%E); last by rewrite lee_addl // lee_fin.
  by rewrite -EFinM lee_fin ler_pemull ?ler0n // -(expR0 R) ler_expR.
move=> [meas well] [worst fits rest].
pose p := run m (x b); pose q := run m (x (~~ b)); pose E := epsilon_at m.
pose f o := wins b (next o); pose g o := wins (~~ b) (next o).
have mf : measurable_fun setT f by exact: meas.
have mg : measurable_fun setT g by exact: meas.
change (\int[p]_o f o <= (expR e)%:E * \int[q]_o g o + d%:E)%E.
(* what follows o is bounded by w, which lies between 0 and 1, and by what remains of d *)
pose w o := mine 1%E ((expR (e - E o))%:E * g o)%E.
have g0 o : (0 <= g o)%E by exact: wins_ge0.
have f0 o : (0 <= f o)%E by exact: wins_ge0.
have dd : 0 <= d - delta m by rewrite subr_ge0.
have eg0 o : (0 <= (expR (e - E o))%:E * g o)%E by rewrite mule_ge0 // lee_fin expR_ge0.
have w01 o : (0 <= w o <= 1)%E.
  by rewrite /w le_minr eg0 lee_fin ler01 /= le_minl lexx.
have fw o : (f o <= w o + (d - delta m)%:E)%E.
  have small : (f o <= (expR (e - E o))%:E * g o + (d - delta m)%:E)%E.
    by apply: IH; rewrite ?subr_ge0 //; exact: worst.
  rewrite /w minElt; case: ifP => _; last exact: small.
  by apply: (le_trans (wins_le1 b (well o))); rewrite lee_addl // lee_fin.
have mE : measurable_fun setT (fun o => (expR (E o))%:E).
  by apply/EFin_measurable_fun; apply: measurable_fun_comp measurable_expR _; exact: epsilon_measurable.
have meE : measurable_fun setT (fun o => (expR (e - E o))%:E).
  apply/EFin_measurable_fun; apply: measurable_fun_comp measurable_expR _.
  by apply: measurable_funB; [exact: measurable_fun_cst | exact: epsilon_measurable].
have mw : measurable_fun setT w.
  by apply: emeasurable_fun_min; [exact: measurable_fun_cst | exact: emeasurable_funM].
have w0 o : (0 <= w o)%E by case/andP: (w01 o).
have wdd : forall o : T, [set: T] o -> (0 <= w o + cst (d - delta m)%:E o)%E by move=> o _; rewrite adde_ge0 // lee_fin.
have mwd : measurable_fun setT (fun o => w o + cst (d - delta m)%:E o)%E.
  by apply: emeasurable_funD => //; exact: measurable_fun_cst.
apply: (@le_trans _ _ (\int[p]_o (w o + cst (d - delta m)%:E o))%E).
  exact: ge0_le_integral.
rewrite ge0_integralD //; last exact: measurable_fun_cst.
rewrite integral_cst // run_mass mule1.
have kept := keeps m (near b) mw w01.
apply: (le_trans (lee_add2r _ kept)); rewrite addeAC -EFinD [(delta m + _)%R]addrC subrK addeC lee_add2r //.
rewrite -ge0_integralM_EFin ?expR_ge0 //.
have ew0 : forall o : T, [set: T] o -> (0 <= (expR (E o))%:E * w o)%E.
  by move=> o _; rewrite mule_ge0 ?lee_fin ?expR_ge0.
have eeg0 : forall o : T, [set: T] o -> (0 <= (expR e)%:E * g o)%E.
  by move=> o _; rewrite mule_ge0 ?lee_fin ?expR_ge0.
have mew : measurable_fun setT (fun o => (expR (E o))%:E * w o)%E by exact: emeasurable_funM.
have meg : measurable_fun setT (fun o => (expR e)%:E * g o)%E.
  by apply: emeasurable_funM; [exact: measurable_fun_cst | exact: mg].
apply: ge0_le_integral => // o _; rewrite (_ : expR e = expR (E o) * expR (e - E o)); last by rewrite -expRD addrC subrK.
by rewrite EFinM -muleA lee_wpmul2l ?lee_fin ?expR_ge0 // /w le_minl lexx orbT.
Qed.

End Measurable.
