//! What is measured of a black box: keys, tuples, signatures on demand, signatures with a stock.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use theta::exit::Failure;
use theta_groups::Group;
use theta_mpc::{
    BlackBox, Party, Stop, all,
    ecdsa::{KeyShare, Request, Signature, Tuple, bind, generate, prepare_nonces, sign},
};
use theta_names::Epoch;
use theta_sharing::Threshold;

use super::{
    backend::{Measured, Visitor},
    cost::{Cost, Runs},
    job::{self, Network},
    phase::{Meter, Phase},
};

/// The most signatures that one program makes at once.
const TOGETHER: usize = 1_000;

/// How often what takes a moment is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    /// Programs that make keys, tuples (more where one may not make all), and signatures on demand.
    pub(super) programs: usize,
    /// Signatures with tuples from the stock, at most one for each tuple.
    pub(super) signatures: usize,
    /// Programs that make tuples at the same time.
    pub(super) at_once: usize,
}

impl Times {
    /// Enough for a median.
    pub(super) const fn usual(at_once: usize) -> Self {
        Self { programs: 5, signatures: 50, at_once }
    }
}

/// Measures a black box over a network.
pub(super) struct Measurement<'a> {
    pub(super) network: &'a mut dyn Network,
    pub(super) threshold: Threshold,
    /// How many tuples to make.
    pub(super) count: usize,
    pub(super) times: Times,
    /// Takes what is being done, for people who wait.
    pub(super) say: &'a dyn Fn(String),
}

/// What it cost.
pub(super) struct Figures {
    /// Programs that made a key.
    pub(super) keys: Runs,
    /// Programs that made a key and tuples.
    pub(super) batches: Runs,
    /// How many tuples each of them made.
    pub(super) batch: usize,
    /// How many of them it takes for the tuples that are wanted.
    pub(super) programs: usize,
    /// Tuples of programs that ran at the same time, each with all that it began with, and how long all took together; `None` where the network runs one
    /// after the other.
    pub(super) at_once: Option<(usize, Duration)>,
    /// Programs that made a key, one tuple, and a signature with it.
    pub(super) on_demand: Runs,
    /// Programs that made a signature with a tuple of the stock.
    pub(super) signatures: Runs,
    /// Programs that made so many signatures at once with tuples of the stock; none where a program makes one tuple.
    pub(super) together: (usize, Runs),
}

/// What a party has for signing.
type Material<B> = (Arc<KeyShare<B>>, Vec<Tuple<B>>);
/// What each party keeps of set-ups, in the order of the parties.
type Kept<B> = [Arc<<B as Measured>::SetUps>];
/// A party's part of a program that makes tuples.
type Making<B> = Pin<Box<dyn Future<Output = Result<Material<B>, Stop>> + Send>>;
/// A signature, and the key that it is to be of.
type Signed<B> = (Signature<<B as BlackBox>::Group>, <<B as BlackBox>::Group as Group>::Element);

impl Visitor for Measurement<'_> {
    type Output = Figures;

    fn visit<B: Measured>(mut self) -> Result<Figures, Failure> {
        (self.say)("a key".to_owned());
        // The first program finds cold caches and connections.
        self.key::<B>()?;
        let keys = (0..self.times.programs).map(|_| self.key::<B>()).collect::<Result<_, _>>()?;
        let programs = self.count.div_ceil(B::BATCH).max(1);
        let batch = self.count.div_ceil(programs);
        let (mut batches, mut signatures, mut together) = (Vec::new(), Vec::new(), Vec::new());
        let many = (batch / 2).min(TOGETHER);
        let kept: Vec<Arc<B::SetUps>> = (0..self.threshold.n()).map(|_| Arc::default()).collect();
        // The first program leaves its set-up to all others.
        self.on_demand::<B>(&kept)?;
        for program in 0..programs.max(self.times.programs) {
            (self.say)(format!("{batch} tuples, program {program}"));
            let (mut material, cost) = self.batch::<B>(&kept, batch)?;
            batches.push(cost);
            if many > 0 && together.len() < self.times.programs {
                together.push(self.sign_together(&mut material, many)?);
            }
            while signatures.len() < self.times.signatures && material.iter().all(|(_, tuples)| !tuples.is_empty()) {
                signatures.push(self.sign(&mut material, signatures.len())?);
            }
        }
        let several = programs.max(3 * self.times.at_once);
        (self.say)(format!("{batch} tuples, {several} programs, {} at once", self.times.at_once));
        let at_once = self.at_once::<B>(&kept, batch, several)?.map(|time| (several * batch, time));
        (self.say)("a signature on demand".to_owned());
        let on_demand = (0..self.times.programs).map(|_| self.on_demand::<B>(&kept)).collect::<Result<_, _>>()?;
        let (keys, batches, on_demand, signatures) = (Runs(keys), Runs(batches), Runs(on_demand), Runs(signatures));
        let together = (many, Runs(together));
        Ok(Figures { keys, batches, batch, programs, at_once, on_demand, signatures, together })
    }
}

impl Measurement<'_> {
    fn key<B: Measured>(&mut self) -> Result<Cost, Failure> {
        let program = |party: Party, meter: Arc<Meter>| async move {
            let black_box = B::make(&party, &B::SetUps::default()).await?;
            meter.enter(Phase::KeyGeneration);
            generate(&black_box, Epoch::FIRST).await
        };
        Ok(job::run(self.network, self.threshold, Phase::SetUp, || Ok(program))?.1)
    }

    /// Each program makes a key of its own.
    fn batch<B: Measured>(&mut self, kept: &Kept<B>, count: usize) -> Result<(Vec<Material<B>>, Cost), Failure> {
        let mut kept = kept.iter();
        job::run(self.network, self.threshold, Phase::SetUp, || Ok(batch::<B>(next(&mut kept)?, count)))
    }

    /// So many of these programs, some of them at the same time.
    fn at_once<B: Measured>(
        &mut self,
        kept: &Kept<B>,
        count: usize,
        programs: usize,
    ) -> Result<Option<Duration>, Failure> {
        let several = (programs, self.times.at_once);
        job::run_at_once(self.network, self.threshold, several, |party| {
            Ok(batch::<B>(next(&mut kept.iter().skip(party))?, count))
        })
    }

    fn sign<B: Measured>(&mut self, material: &mut [Material<B>], number: usize) -> Result<Cost, Failure> {
        let digest = digest(number);
        let mut parts = material.iter_mut();
        let begin = || {
            let part = parts.next().and_then(|(key, tuples)| Some((Arc::clone(key), tuples.pop()?)));
            let (key, tuple) = part.ok_or_else(|| Failure::internal("too few tuples"))?;
            Ok(move |party: Party, _: Arc<Meter>| async move {
                let request = Request { tuple: tuple.id(), digest, session: digest };
                let signature = sign(&B::make_for_openings(&party)?, &key, tuple, request).await?;
                Ok((signature, *key.public_key()))
            })
        };
        let (signed, cost) = job::run(self.network, self.threshold, Phase::Signing, begin)?;
        verified::<B>(&signed, &digest)?;
        Ok(cost)
    }

    /// One program that makes so many signatures: what they send leaves together.
    fn sign_together<B: Measured>(&mut self, material: &mut [Material<B>], many: usize) -> Result<Cost, Failure> {
        let mut parts = material.iter_mut();
        let begin = || {
            let (key, tuples) = parts.next().ok_or_else(|| Failure::internal("a party without tuples"))?;
            let from = tuples.len().checked_sub(many).ok_or_else(|| Failure::internal("too few tuples"))?;
            let (key, tuples) = (Arc::clone(key), tuples.split_off(from));
            Ok(move |party: Party, _: Arc<Meter>| async move {
                let black_box = B::make_for_openings(&party)?;
                let signed = tuples.into_iter().enumerate().map(|(number, tuple)| {
                    let digest = digest(number);
                    let request = Request { tuple: tuple.id(), digest, session: digest };
                    sign(&black_box, &key, tuple, request)
                });
                Ok((all(signed).await?, *key.public_key()))
            })
        };
        let (signed, cost) = job::run(self.network, self.threshold, Phase::Signing, begin)?;
        for number in 0..many {
            let each = signed.iter().filter_map(|(all, key)| Some((*all.get(number)?, *key)));
            verified::<B>(&each.collect::<Vec<_>>(), &digest(number))?;
        }
        Ok(cost)
    }

    fn on_demand<B: Measured>(&mut self, kept: &Kept<B>) -> Result<Cost, Failure> {
        let digest = digest(0);
        let program = |set_ups: Arc<B::SetUps>| {
            move |party: Party, meter: Arc<Meter>| async move {
                let black_box = B::make(&party, &set_ups).await?;
                meter.enter(Phase::KeyGeneration);
                let key = generate(&black_box, Epoch::FIRST).await?;
                meter.enter(Phase::Nonces);
                let nonces = prepare_nonces(&black_box, Epoch::FIRST, 1).await?;
                meter.enter(Phase::Binding);
                let tuple = bind(&black_box, nonces, &key).await?.pop();
                // It is missing with probability 2^-254.
                let tuple = tuple.ok_or(Stop::Input("a nonce that is of no use"))?;
                meter.enter(Phase::Signing);
                let request = Request { tuple: tuple.id(), digest, session: digest };
                let signature = sign(&black_box, &key, tuple, request).await?;
                black_box.leave();
                Ok((signature, *key.public_key()))
            }
        };
        let mut kept = kept.iter();
        let begin = || Ok(program(next(&mut kept)?));
        let (signed, cost) = job::run(self.network, self.threshold, Phase::SetUp, begin)?;
        verified::<B>(&signed, &digest)?;
        Ok(cost)
    }
}

/// A party's part of a program that makes a key and so many tuples.
fn batch<B: Measured>(set_ups: Arc<B::SetUps>, count: usize) -> impl FnOnce(Party, Arc<Meter>) -> Making<B> + Send {
    move |party, meter| {
        Box::pin(async move {
            let black_box = B::make(&party, &set_ups).await?;
            meter.enter(Phase::KeyGeneration);
            let key = generate(&black_box, Epoch::FIRST).await?;
            meter.enter(Phase::Nonces);
            let nonces = prepare_nonces(&black_box, Epoch::FIRST, count).await?;
            meter.enter(Phase::Binding);
            let tuples = bind(&black_box, nonces, &key).await?;
            black_box.leave();
            Ok((Arc::new(key), tuples))
        })
    }
}

/// What the next party keeps.
fn next<'a, T: 'a>(kept: &mut impl Iterator<Item = &'a Arc<T>>) -> Result<Arc<T>, Failure> {
    kept.next().map(Arc::clone).ok_or_else(|| Failure::internal("a party without set-ups"))
}

/// What is signed: another digest for each number.
fn digest(number: usize) -> [u8; 32] {
    let mut digest = [0xd1; 32];
    digest.iter_mut().zip(number.to_be_bytes()).for_each(|(place, byte)| *place = byte);
    digest
}

/// Whether all parties have a signature of the key on the digest.
fn verified<B: Measured>(signed: &[Signed<B>], digest: &[u8; 32]) -> Result<(), Failure> {
    if signed.iter().all(|(signature, key)| signature.vartime_verifies(key, digest)) {
        Ok(())
    } else {
        Err(Failure::internal("a signature that is false"))
    }
}
