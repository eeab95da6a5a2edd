//! The arithmetic black boxes: openings with their checks, products, and the verification of products, at the first party.
//!
//! The parties of a program repeat the step on a share that is zero or random. It is that of a public value, which all know; what each box
//! does with it does not depend on that.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    time::{Duration, Instant},
};

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use theta::exit::Failure;
use theta_groups::{Group, P256, P256Scalar, Scalar};
use theta_mpc::{ActiveRep3, ActiveShamir, BlackBox, Mascot, Party, PassiveShamir, SemiOt, Stop};
use theta_sharing::Threshold;

use super::{
    Target,
    parties::{run, run_with},
    seeded,
};
use crate::timing::dudect::{Class, Trial};

/// A step of a black box.
#[derive(Clone, Copy)]
enum Step {
    Open,
    OpenElement,
    Multiply,
    /// A product with one factor, which is fixed for it: each party's summand of the factor chooses in transfers.
    MultiplyBy,
    Verify,
    /// An opening with a product in variable time beside it.
    Leak,
}

/// A black box that is measured.
trait Measured: BlackBox<Group = P256> {
    /// Any k of n.
    const PARTIES: (u16, u16);
    /// How often a program repeats a step on products: an instance may not send more.
    const PRODUCTS: u32;

    /// Sets it up.
    fn make(party: &Party) -> impl Future<Output = Result<Self, Stop>> + Send;
}

macro_rules! measured {
    ($($name:ty: $k:literal of $n:literal, $products:literal;)*) => { $(
        impl Measured for $name {
            const PARTIES: (u16, u16) = ($k, $n);
            const PRODUCTS: u32 = $products;

            fn make(party: &Party) -> impl Future<Output = Result<Self, Stop>> + Send {
                Self::new(party)
            }
        }
    )* };
}

measured! {
    ActiveShamir<P256>: 2 of 3, 100;
    PassiveShamir<P256>: 2 of 3, 100;
    ActiveRep3<P256>: 2 of 3, 100;
    SemiOt<P256>: 2 of 2, 40;
    Mascot<P256>: 2 of 2, 20;
}

/// How often a program repeats an opening.
const OPENINGS: u32 = 200;

pub(super) fn all() -> Vec<Target> {
    vec![
        target::<Mascot<P256>>("mpc-open-mascot", Step::Open),
        target::<Mascot<P256>>("mpc-open-element-mascot", Step::OpenElement),
        target::<ActiveShamir<P256>>("mpc-open-shamir", Step::Open),
        target::<ActiveShamir<P256>>("mpc-open-element-shamir", Step::OpenElement),
        target::<ActiveRep3<P256>>("mpc-open-rep3", Step::Open),
        target::<ActiveRep3<P256>>("mpc-open-element-rep3", Step::OpenElement),
        target::<Mascot<P256>>("mpc-multiply-mascot", Step::Multiply),
        target::<SemiOt<P256>>("mpc-multiply-semi-ot", Step::Multiply),
        target::<PassiveShamir<P256>>("mpc-multiply-shamir", Step::Multiply),
        target::<Mascot<P256>>("mpc-multiply-by-mascot", Step::MultiplyBy),
        target::<SemiOt<P256>>("mpc-multiply-by-semi-ot", Step::MultiplyBy),
        inverses("mpc-inverses-mascot"),
        target::<ActiveShamir<P256>>("mpc-verify-shamir", Step::Verify),
        target::<ActiveRep3<P256>>("mpc-verify-rep3", Step::Verify),
    ]
}

/// What leaks on purpose. It has to be found in the way in which all steps of black boxes are measured.
pub(super) fn control() -> Target {
    target::<PassiveShamir<P256>>("control-opening", Step::Leak)
}

fn target<B: Measured>(name: &str, step: Step) -> Target {
    Target::new(name, "share zero, or random", move |trial| measure::<B>(trial, step))
}

fn measure<B: Measured>(trial: &mut Trial, step: Step) -> Result<(), Failure> {
    let (k, n) = B::PARTIES;
    let threshold = Threshold::new(k, n).map_err(Failure::internal)?;
    while trial.goes_on() {
        let mut seed = [0; 32];
        trial.rng().fill_bytes(&mut seed);
        let results = run(threshold, trial.rng(), |_| Ok(move |party| repeat::<B>(party, step, seed)))?;
        for (class, time) in results.into_iter().next().unwrap_or_default() {
            trial.record(class, time);
        }
    }
    Ok(())
}

/// The program. From one seed, all parties have the same classes and values.
async fn repeat<B: Measured>(party: Party, step: Step, seed: [u8; 32]) -> Result<Vec<(Class, Duration)>, Stop> {
    let black_box = B::make(&party).await?;
    // An opening is of a sum with this, so that it is no sum of zeros.
    let hidden = black_box.random(1).await?;
    let mut rng = ChaCha20Rng::from_seed(seed);
    let repeats = match step {
        Step::Open | Step::OpenElement | Step::Leak => OPENINGS,
        Step::Multiply | Step::MultiplyBy | Step::Verify => B::PRODUCTS,
    };
    let mut times = Vec::new();
    for _ in 0..repeats {
        let class = Class::draw(&mut rng);
        let random = P256Scalar::random(&mut rng);
        let value = if class == Class::Fixed { P256Scalar::ZERO } else { random };
        let share = black_box.constants(&[value]);
        let time = match step {
            Step::Open => {
                let sum = &share + &hidden;
                clocked(black_box.open(&sum)).await?
            }
            Step::OpenElement => {
                let element = (&share + &hidden).convert();
                clocked(black_box.open_points(&element)).await?
            }
            Step::Leak => {
                let sum = &share + &hidden;
                let leaks = async {
                    let _ = std::hint::black_box(P256::vartime_msm(&[value], &[P256::generator()]));
                    black_box.open(&sum).await
                };
                clocked(leaks).await?
            }
            Step::Multiply => clocked(black_box.multiply(&share, &hidden)).await?,
            Step::MultiplyBy => clocked(black_box.multiply_by(&hidden.then(&share), &share)).await?,
            Step::Verify => {
                black_box.multiply(&share, &hidden).await?;
                clocked(black_box.verify()).await?
            }
        };
        times.push((class, time));
    }
    Ok(times)
}

/// Values with their inverses in the group take nothing in: what is secret of them is drawn. So one sample is a program of MASCOT in which all that the
/// first party draws is the same, or random, its MAC key and choices among it, while the other party's is random always; what is opened is random.
fn inverses(name: &str) -> Target {
    Target::new(name, "what a party draws the same, or random", |trial| {
        let (k, n) = Mascot::<P256>::PARTIES;
        let threshold = Threshold::new(k, n).map_err(Failure::internal)?;
        trial.samples(|class, rng| {
            let first = seeded(class, rng);
            let times = run_with(threshold, first, rng, |_| Ok(make_inverses))?;
            times.into_iter().next().ok_or_else(|| Failure::internal("a program without parties"))
        })
    })
}

/// How many values with inverses a sample has.
const INVERSES: usize = 4;

async fn make_inverses(party: Party) -> Result<Duration, Stop> {
    let black_box = Mascot::<P256>::new(&party).await?;
    clocked(black_box.inverses(INVERSES)).await
}

/// How long a step of this party takes, without what others do while it waits.
async fn clocked<T>(step: impl Future<Output = Result<T, Stop>> + Send) -> Result<Duration, Stop> {
    let mut step = pin!(step);
    let mut spent = Duration::ZERO;
    poll_fn(|context| {
        let begin = Instant::now();
        let polled = step.as_mut().poll(context);
        spent += begin.elapsed();
        polled
    })
    .await?;
    Ok(spent)
}
