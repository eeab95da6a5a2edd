//! A party that opens another R, the same one to all, and goes on with it as if it were right: its own machine has that R, too, and confirms it, so that
//! nothing contradicts it but the check of opened elements (`blackbox/openings.rs`).
//!
//! What it would gain is one signature that nobody asked for. k and x / k belong to the right R, which the party knows. If s is made with the r of another
//! element, s = (e + r x) / k, then s r* / r is that of e* = e r* / r for R: so it opens the element whose r makes e* the digest that it wants. That takes a
//! digest which is known before R is, as of whatever signs at once.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use theta_groups::Secret;
use theta_names::ShareIndex;
use theta_rounds::simulator::{Adversary, HonestSend, SimRng};
use theta_rounds::{Abort, PartyId};

use super::super::curve::hash_to_scalar;
use super::super::presignature::Message;
use super::super::sign::Blinded;
use super::super::signature::Signature;
use super::forgeries::{Delta, WANTED, prepare, r};
use super::*;
use crate::blackbox::{Inverses, Masks};
use crate::program::among_with;
use crate::{Element, Scalar, Shared, SharedPoints};

type G = P256;
type S = <G as Group>::Scalar;
type Point = <G as Group>::Element;

/// What all are asked to sign.
const ASKED: Message = Message { digest: [0x11; 32], session: [8; 32] };

/// Another R, and what is forged with it.
#[derive(Clone, Copy)]
struct Lie {
    instead: Point,
    /// R* = c R, R being the right one.
    forged: Point,
    c: S,
}

impl Lie {
    /// For the right R: half of all numbers are the abscissa of an element.
    fn of(right: Point) -> Self {
        let (e, wanted): (S, S) = (hash_to_scalar(&ASKED.digest), hash_to_scalar(&WANTED));
        let fitted = (1..).map(S::from_u64).find_map(|c| {
            let forged = right * c;
            let abscissa = (e * r(&forged) * wanted.invert()).encode();
            let instead = G::decode(&[&[2][..], &abscissa].concat()).ok()?;
            Some(Self { instead, forged, c })
        });
        fitted.unwrap()
    }

    /// The digest that s is fitted to, and its signature.
    fn fit(&self, s: S, of_inverse: S, of_product: S) -> Option<([u8; 32], Signature<G>)> {
        let factor = r(&self.forged) * of_product.invert();
        let signature = Signature::new(&self.forged, s * factor * self.c.invert())?;
        Some(((of_inverse * factor).encode(), signature))
    }
}

/// A black box that follows the protocol, but takes another R for that which was opened.
struct WrongR<B: BlackBox> {
    inner: B,
    instead: Element<B>,
}

fn of<A: BlackBox, B: BlackBox<Cell = A::Cell>>(shared: &Shared<A>) -> Shared<B> {
    Shared::from_cells(shared.cells().iter().copied())
}

impl<B: BlackBox> BlackBox for WrongR<B> {
    type Group = B::Group;
    type Cell = B::Cell;
    const NAME: &'static str = B::NAME;
    const ACTIVE: bool = B::ACTIVE;

    fn party(&self) -> &Party {
        self.inner.party()
    }

    fn constants(&self, values: &[Scalar<Self>]) -> Shared<Self> {
        of(&self.inner.constants(values))
    }

    async fn random(&self, count: usize) -> Result<Shared<Self>, Stop> {
        Ok(of(&self.inner.random(count).await?))
    }

    async fn input(
        &self,
        dealer: ShareIndex,
        count: usize,
        values: Option<&Secret<Vec<Scalar<Self>>>>,
    ) -> Result<Shared<Self>, Stop> {
        Ok(of(&self.inner.input(dealer, count, values).await?))
    }

    async fn multiply(&self, a: &Shared<Self>, b: &Shared<Self>) -> Result<Shared<Self>, Stop> {
        Ok(of(&self.inner.multiply(&of(a), &of(b)).await?))
    }

    async fn open(&self, values: &Shared<Self>) -> Result<Vec<Scalar<Self>>, Stop> {
        self.inner.open(&of(values)).await
    }

    async fn open_points(&self, points: &SharedPoints<Self>) -> Result<Vec<Element<Self>>, Stop> {
        self.inner.open_points(&of(points.logarithms()).convert()).await
    }

    async fn open_recognised(
        &self,
        value: &Shared<Self>,
        recognise: impl Fn(&Scalar<Self>) -> bool + Send + Sync,
    ) -> Result<Scalar<Self>, Stop> {
        self.inner.open_recognised(&of(value), recognise).await
    }

    async fn verify(&self) -> Result<(), Stop> {
        self.inner.verify().await
    }

    async fn inverses(&self, count: usize) -> Result<Inverses<Self>, Stop> {
        let Inverses { values, mut elements, masks } = self.inner.inverses(count).await?;
        elements.fill(self.instead);
        let masks = masks.map(|Masks { masks, products, .. }| Masks {
            record: None,
            masks: of(&masks),
            products: of(&products),
        });
        Ok(Inverses { values: of(&values), elements, masks })
    }
}

/// The key, a digest, and its signature.
type Ended = (Point, [u8; 32], Signature<G>);

/// R', and what 1 / k and x / k are multiplied by.
fn blinded<B: BlackBox<Group = G>>(key: &KeyShare<B>, tuple: &Tuple<B>, delta: Delta) -> (Point, S, S) {
    match delta {
        Delta::One => (tuple.element, hash_to_scalar(&ASKED.digest), r(&tuple.element)),
        Delta::Hashed => {
            let blinded = Blinded::<G>::vartime_of(key.public_key(), &tuple.element, &ASKED).unwrap();
            (blinded.element, blinded.of_inverse, blinded.of_product)
        }
    }
}

/// Signs what is asked for.
async fn follow<B: BlackBox<Group = G>>(black_box: B, delta: Delta) -> Result<Ended, Stop> {
    let (key, tuple) = prepare(&black_box).await?;
    let public = *key.public_key();
    let signature = match delta {
        Delta::Hashed => {
            let request = Request { tuple: tuple.id(), digest: ASKED.digest, session: ASKED.session };
            sign(&black_box, &key, tuple, request).await?
        }
        Delta::One => {
            let (element, of_inverse, of_product) = blinded(&key, &tuple, delta);
            let s = &tuple.inverse.times(&of_inverse) + &tuple.product.times(&of_product);
            let signature = |s: &S| Signature::<G>::new(&element, *s);
            let valid = |s: &S| signature(s).is_some_and(|it| it.vartime_verifies(&public, &ASKED.digest));
            signature(&black_box.open_recognised(&s, valid).await?).ok_or(Stop::Lost)?
        }
    };
    Ok((public, ASKED.digest, signature))
}

/// Does the same with another R, and recognises s by what it was fitted to.
async fn forge<B: BlackBox<Group = G>>(inner: B, delta: Delta, lie: Lie) -> Result<Ended, Stop> {
    let black_box = WrongR { inner, instead: lie.instead };
    let (key, tuple) = prepare(&black_box).await?;
    let (_, of_inverse, of_product) = blinded(&key, &tuple, delta);
    let s = &tuple.inverse.times(&of_inverse) + &tuple.product.times(&of_product);
    let fit = |s: &S| {
        let fitted = lie.fit(*s, of_inverse, of_product);
        fitted.filter(|(digest, signature)| signature.vartime_verifies(key.public_key(), digest))
    };
    let s = black_box.open_recognised(&s, |s| fit(s).is_some()).await?;
    let (digest, signature) = fit(&s).ok_or(Stop::Lost)?;
    Ok((*key.public_key(), digest, signature))
}

/// What a party sends: rounds, and messages.
type Sent = Arc<Mutex<Vec<(u16, Bytes)>>>;

/// What a party sends is noted. In one round it may send other elements, so much apart from the right ones.
struct Wire {
    apart: Option<(u16, Point)>,
    sent: Sent,
}

/// The group elements of a message; `None` if it is not of elements.
fn elements(payload: &[u8]) -> Option<Vec<Point>> {
    payload.chunks(33).map(|code| G::decode(code).ok()).collect()
}

impl Adversary for Wire {
    fn on_send(&mut self, _: &mut SimRng, _: PartyId, honest: HonestSend) -> Vec<HonestSend> {
        let round = honest.slot.number;
        let apart = self.apart.filter(|(of_r, _)| *of_r == round);
        let others = apart.zip(elements(&honest.payload)).map(|((_, apart), elements)| {
            Bytes::from(elements.iter().flat_map(|element| G::encode(&(*element + apart))).collect::<Vec<u8>>())
        });
        let payload = others.unwrap_or_else(|| honest.payload.clone());
        self.sent.lock().unwrap().push((round, payload.clone()));
        vec![HonestSend { payload, ..honest }]
    }
}

/// What came of a run: how each party ended, if it did, and what the first two sent.
struct Run {
    ends: Vec<Option<Result<Ended, Abort>>>,
    sent: [Vec<(u16, Bytes)>; 2],
}

impl Run {
    /// Of one seed, so that the right R is the same in all runs.
    fn of<B, F>(
        threshold: (u16, u16),
        lie: Option<&(Lie, u16, Point)>,
        delta: Delta,
        make: impl Fn(Party) -> F + Copy + Send + 'static,
    ) -> Self
    where
        B: BlackBox<Group = G>,
        F: Future<Output = Result<B, Stop>> + Send + 'static,
    {
        let (sent, lie) = ([Sent::default(), Sent::default()], lie.copied());
        let between = |index: ShareIndex| {
            let sent = sent.get(index.position())?.clone();
            let apart = lie.filter(|_| index.position() == 0).map(|(_, of_r, apart)| (of_r, apart));
            Some(Box::new(Wire { apart, sent }) as Box<dyn Adversary>)
        };
        let report = among_with(threshold, 1, between, move |party| async move {
            let lie = lie.filter(|_| party.position() == 0);
            let black_box = make(party).await?;
            match lie {
                Some((lie, ..)) => forge(black_box, delta, lie).await,
                None => follow(black_box, delta).await,
            }
        });
        let ends = report.parties.into_values().map(|party| party.result).collect();
        Self { ends, sent: sent.map(|sent| sent.lock().unwrap().clone()) }
    }

    /// The last round in which the second party sent anything.
    fn last(&self) -> u16 {
        self.sent[1].iter().map(|(round, _)| *round).max().unwrap()
    }
}

/// The run in which party 1 opens another R, the round in which it does that, and the one in which shares of s leave.
fn with_wrong_r<B, F>(
    threshold: (u16, u16),
    delta: Delta,
    make: impl Fn(Party) -> F + Copy + Send + 'static,
) -> (Run, u16, u16)
where
    B: BlackBox<Group = G>,
    F: Future<Output = Result<B, Stop>> + Send + 'static,
{
    // A party that waits for what the others show of R knows it before it sends its own part. Here a run without a lie says what it is.
    let honest = Run::of(threshold, None, Delta::One, make);
    let Some(Ok((public, digest, signature))) = &honest.ends[0] else { panic!("no signature") };
    let right = signature.vartime_element(public, digest);
    let of_elements = honest.sent[0].iter().filter(|(_, payload)| elements(payload).is_some());
    let of_r = of_elements.map(|(round, _)| *round).max().unwrap();
    let lie = Lie::of(right);
    let run = Run::of(threshold, Some(&(lie, of_r, lie.instead - right)), delta, make);
    (run, of_r, honest.last())
}

/// The others see that R is false when they have opened the sum, after a coin of so many rounds, and send nothing more.
fn nothing_leaves<B, F>(threshold: (u16, u16), coin: u16, make: impl Fn(Party) -> F + Copy + Send + 'static)
where
    B: BlackBox<Group = G>,
    F: Future<Output = Result<B, Stop>> + Send + 'static,
{
    for delta in [Delta::One, Delta::Hashed] {
        let (run, of_r, signs) = with_wrong_r(threshold, delta, make);
        for end in &run.ends[1..] {
            assert_eq!(*end, Some(Err(Abort::Cheated("an opened element is false"))), "{}", B::NAME);
        }
        assert_eq!(run.last(), of_r + coin + 1, "{}: shares of s leave in round {signs}", B::NAME);
        assert!(run.last() < signs && !matches!(run.ends[0], Some(Ok(_))));
    }
}

/// Nobody sees anything before shares of s are put together: the others have no signature, and the first has one of another digest than all were asked for.
/// Without re-randomising it is the one that it wanted; as shipped, r is a hash of what it opened, and the digest is what comes of it.
fn forges<B, F>(threshold: (u16, u16), make: impl Fn(Party) -> F + Copy + Send + 'static)
where
    B: BlackBox<Group = G>,
    F: Future<Output = Result<B, Stop>> + Send + 'static,
{
    for (delta, is_wanted) in [(Delta::One, true), (Delta::Hashed, false)] {
        let (run, _, signs) = with_wrong_r(threshold, delta, make);
        assert_eq!(run.last(), signs, "{}: a share of s leaves", B::NAME);
        assert!(
            !run.ends[1..].iter().any(|end| matches!(end, Some(Ok(_)))),
            "{}: a false signature is returned",
            B::NAME
        );
        let Some(Ok((public, digest, signature))) = &run.ends[0] else { panic!("{}: nothing is forged", B::NAME) };
        assert!(signature.vartime_verifies(public, digest) && *digest != ASKED.digest, "{}", B::NAME);
        assert_eq!(*digest == WANTED, is_wanted, "{}", B::NAME);
    }
}

#[test]
fn after_a_wrong_r_no_share_of_s_leaves() {
    for threshold in [(2, 3), (3, 5)] {
        nothing_leaves(threshold, 2, |party| async move { ActiveShamir::<G>::new(&party).await });
    }
    nothing_leaves((2, 3), 2, |party| async move { ActiveRep3::<G>::new(&party).await });
}

#[test]
fn with_passive_security_a_share_of_s_after_a_wrong_r_forges() {
    for threshold in [(2, 3), (3, 5)] {
        forges(threshold, |party| async move { PassiveShamir::<G>::new(&party).await });
    }
    forges((2, 3), |party| async move { PassiveRep3::<G>::new(&party).await });
}
