//! The arithmetic black box: what programs are written on.
//!
//! The interface is that of Dalskov, Keller, Orlandi, Shrishak and Shulman, "Securing DNSSEC Keys via Threshold ECDSA From
//! Generic MPC" (ESORICS 2020), section 3: random values, inputs, products, openings and linear operations over Z_q, and
//! their extension to a group of order q, where `[a]` becomes `<a>` = a G without communication and `<a>` can be opened.

mod cell;
mod inverses;
#[cfg(test)]
mod lies;
mod openings;
mod products;
mod reserve;
mod shared;
#[cfg(test)]
mod shown;
mod sums;

use core::future::Future;

use theta_groups::{Group, Secret};
use theta_names::ShareIndex;

use crate::{Party, Stop};

pub use cell::Cell;
pub use inverses::Inverses;
#[cfg(test)]
pub(crate) use inverses::Masks;
pub(crate) use inverses::{inverses, inverses_from};
pub(crate) use openings::{open_points, prepare_opening};
pub(crate) use products::{ForMasks, Products, Unverified, check_factor, check_lengths, multiply};
pub(crate) use reserve::Reserve;
pub use shared::{Shared, SharedPoints};
pub(crate) use shared::{decode, encode, is_zero, read, zeros};
#[cfg(test)]
pub(crate) use shown::all_of;
pub(crate) use sums::open_sums;

/// `[a]`, `[b]` and `[c]` with c = a b.
pub type Triples<B> = (Shared<B>, Shared<B>, Shared<B>);
/// The scalars of a black box.
pub type Scalar<B> = <<B as BlackBox>::Group as Group>::Scalar;
/// The group elements of a black box.
pub type Element<B> = <<B as BlackBox>::Group as Group>::Element;

/// An arithmetic black box over Z_q and a group of order q, at one of its parties.
///
/// All operations take lists, and all parties call them in the same order with lists of the same lengths. Several can run
/// at once ([`both`](crate::both)); what they send then shares messages.
///
/// A black box with active security ([`BlackBox::ACTIVE`]) gives three guarantees. Whatever [`open`](Self::open),
/// [`open_points`](Self::open_points) and [`open_recognised`](Self::open_recognised) return is right. Before a value is
/// opened, all parties have received whatever was dealt, so that nobody chooses an input or a random value by what it sees
/// of the opening; and every product that *this* black box has made so far has been verified, so that no opening shows what
/// depends on a false product. (Products that another instance made are that one's to verify: call its
/// [`verify`](Self::verify) before its shares go into another instance.) And whoever cannot be sure stops, with [`Stop::Cheated`], or with blame where the messages name somebody.
///
/// A program is written for any of them. Of what three parties enter here, all learn the sum of squares and nothing else:
///
/// ```
/// use theta_groups::{P256, Scalar as _, Secret};
/// use theta_mpc::{ActiveShamir, BlackBox, Program, Scalar, Stop};
/// # use theta_rounds::{Driver, LockStep, PartyId, simulator::{Conditions, Simulator}};
/// # use theta_sharing::Threshold;
///
/// async fn sum_of_squares<B: BlackBox>(it: &B, own: u64) -> Result<Scalar<B>, Stop> {
///     let mut sum = it.constants(&[Scalar::<B>::ZERO]);
///     for dealer in it.party().threshold().indices() {
///         let is_ours = dealer.position() == it.party().position();
///         let own = is_ours.then(|| Secret::new(vec![Scalar::<B>::from_u64(own)]));
///         let entered = it.input(dealer, 1, own.as_ref()).await?;
///         sum = &sum + &it.multiply(&entered, &entered).await?;
///     }
///     it.open(&sum).await?.first().copied().ok_or(Stop::Input("nothing was opened"))
/// }
///
/// let threshold = Threshold::new(2, 3)?;
/// # let mut group = Simulator::new(1, Conditions::default());
/// for (index, own) in threshold.indices().zip([3, 4, 12]) {
///     let program = Program::new(index, threshold, move |party| async move {
///         let it = ActiveShamir::<P256>::new(&party).await?;
///         sum_of_squares(&it, own).await
///     })?;
///     // A program is a machine of `theta-rounds`: whoever carries its messages runs it. Here that is a simulated network.
/// #   let members = threshold.indices().map(PartyId::of_share);
/// #   let machine = Driver::new(PartyId::of_share(index), members, LockStep::new(program));
/// #   group.honest(PartyId::of_share(index), Box::new(machine));
/// }
/// # let agreed = group.run().agreed(|sum| *sum)?;
/// assert!(agreed == Scalar::<ActiveShamir<P256>>::from_u64(9 + 16 + 144));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait BlackBox: Sized + Send + Sync + 'static {
    /// The group; Z_q is its scalars.
    type Group: Group;
    /// One party's share of one value.
    type Cell: Cell<Scalar<Self>>;
    /// The protocol's name.
    const NAME: &'static str;
    /// Whether it is secure against parties that do not follow the protocol.
    const ACTIVE: bool;

    /// This party.
    fn party(&self) -> &Party;

    /// Shares of public values. Local.
    fn constants(&self, values: &[Scalar<Self>]) -> Shared<Self>;

    /// Random values that nobody knows.
    ///
    /// # Errors
    /// [`Stop`].
    fn random(&self, count: usize) -> impl Future<Output = Result<Shared<Self>, Stop>> + Send;

    /// Values that one party knows: that party passes `Some` of exactly `count` values, the others `None`.
    ///
    /// # Errors
    /// [`Stop`]; [`Stop::Input`] if `values` does not fit.
    fn input(
        &self,
        dealer: ShareIndex,
        count: usize,
        values: Option<&Secret<Vec<Scalar<Self>>>>,
    ) -> impl Future<Output = Result<Shared<Self>, Stop>> + Send;

    /// The products of two lists of the same length, place by place.
    ///
    /// # Errors
    /// [`Stop`]; [`Stop::Input`] if the lengths differ.
    fn multiply(&self, a: &Shared<Self>, b: &Shared<Self>) -> impl Future<Output = Result<Shared<Self>, Stop>> + Send;

    /// The products of values with one factor, the same for all of them. Where products are made by transfers, that is much less work than
    /// [`Self::multiply`].
    ///
    /// # Errors
    /// [`Stop`]; [`Stop::Input`] unless the factor is one value.
    fn multiply_by(
        &self,
        values: &Shared<Self>,
        factor: &Shared<Self>,
    ) -> impl Future<Output = Result<Shared<Self>, Stop>> + Send {
        async move {
            check_factor(factor)?;
            self.multiply(values, &factor.repeated(values.len())).await
        }
    }

    /// Shows values to all.
    ///
    /// # Errors
    /// [`Stop`].
    fn open(&self, values: &Shared<Self>) -> impl Future<Output = Result<Vec<Scalar<Self>>, Stop>> + Send;

    /// Shows products that are verified nowhere if the black box says so ([`MascotMinus`](crate::MascotMinus)): for programs in which a false one shows,
    /// and tells nobody anything. With all other black boxes it is [`Self::open`].
    ///
    /// # Errors
    /// [`Stop`].
    fn open_products(&self, values: &Shared<Self>) -> impl Future<Output = Result<Vec<Scalar<Self>>, Stop>> + Send {
        self.open(values)
    }

    /// Shows a factor less each of the masks that came with [`Self::inverses`], and confirms a digest of what all know to be the same. `known`: the number under which it is on
    /// record how these masks were dealt; and for each party, by position, the generator times its share of the factor, the same at all parties, or nothing if that is not
    /// known. Whoever shows a false share is found by them if the black box can.
    ///
    /// # Errors
    /// [`Stop`].
    fn open_masked(
        &self,
        values: &Shared<Self>,
        _known: Option<(u64, &[Element<Self>])>,
        digest: [u8; 32],
    ) -> impl Future<Output = Result<Vec<Scalar<Self>>, Stop>> + Send {
        open_masked(self, values, digest)
    }

    /// Shows elements to all.
    ///
    /// # Errors
    /// [`Stop`].
    fn open_points(&self, points: &SharedPoints<Self>)
    -> impl Future<Output = Result<Vec<Element<Self>>, Stop>> + Send;

    /// Shows one value that every party recognises when it sees it, as a signature is known to be right: it goes on as soon
    /// as enough shares have come, also without or against the rest. Parties whose shares contradict the result are
    /// blamed. Nothing can be sent after it.
    ///
    /// # Errors
    /// [`Stop`]; [`Stop::Input`] if it is not one value.
    fn open_recognised(
        &self,
        value: &Shared<Self>,
        recognise: impl Fn(&Scalar<Self>) -> bool + Send + Sync,
    ) -> impl Future<Output = Result<Scalar<Self>, Stop>> + Send;

    /// Verifies all products that this black box has made so far. Openings do it by themselves.
    ///
    /// # Errors
    /// [`Stop`].
    fn verify(&self) -> impl Future<Output = Result<(), Stop>> + Send;

    /// Goes on only if all honest parties come here with the same digest of public values. After it, whoever has a result
    /// knows that all others have the same.
    ///
    /// # Errors
    /// [`Stop`].
    fn confirm(&self, digest: [u8; 32]) -> impl Future<Output = Result<(), Stop>> + Send {
        confirm(self, digest)
    }

    /// Random values `[a]`, with the generator times the inverse of each, in public. With probability 2^-254 the identity stands for one that cannot be had,
    /// or the program stops.
    ///
    /// # Errors
    /// [`Stop`].
    fn inverses(&self, count: usize) -> impl Future<Output = Result<Inverses<Self>, Stop>> + Send {
        async move { inverses_from(self, self.triples(count).await?).await }
    }

    /// Random triples (`[a]`, `[b]`, `[ab]`).
    ///
    /// # Errors
    /// [`Stop`].
    fn triples(&self, count: usize) -> impl Future<Output = Result<Triples<Self>, Stop>> + Send {
        async move {
            let (a, b) = self.random(2 * count).await?.split(count);
            let c = self.multiply(&a, &b).await?;
            Ok((a, b, c))
        }
    }
}

pub(crate) async fn open_masked<B: BlackBox>(
    black_box: &B,
    values: &Shared<B>,
    digest: [u8; 32],
) -> Result<Vec<Scalar<B>>, Stop> {
    let opened = black_box.open(values).await?;
    black_box.confirm(digest).await?;
    Ok(opened)
}

async fn confirm<B: BlackBox>(black_box: &B, digest: [u8; 32]) -> Result<(), Stop> {
    black_box.verify().await?;
    if black_box.party().agree(&digest).await? { Ok(()) } else { Err(Stop::Cheated("the parties' results differ")) }
}
