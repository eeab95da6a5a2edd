//! The set-up of all pairs, in three rounds: base OTs and the extension in both directions; then COPEe in both directions, whose
//! OTs are made by the extension with the bits of the MAC keys.

use std::collections::BTreeMap;

use rand_core::CryptoRng;
use theta_groups::{Ristretto255, Scalar, Secret};
use theta_names::ShareIndex;

use super::Fault;
use super::parties::{Messages, Parties, split};
use crate::error::expect_len;
use crate::extension::ReceivedTransfers;
use crate::{Choices, Misuse, base, copee, extension};

/// The field size of the extension: a quarter of the bytes of k = 1 for a fifth more work of both sides together.
const K: u8 = 4;
/// The bits of a digit of COPEe: a third of the bytes of k = 1 for four fifths of its work. (k = 2 takes a tenth less, k = 4 a third more.)
pub(super) const DIGIT: u8 = 3;

/// The group of the base OTs, whatever the scalars are: of prime order, and the fastest there is.
type Base = Ristretto255;

/// The set-up before its first messages arrive.
#[derive(Debug)]
pub struct Mesh<S: Scalar>(core::marker::PhantomData<S>);

/// The set-up after its first round: what is needed of each party is its question.
#[derive(Debug)]
pub struct Asked<S: Scalar> {
    parties: Parties,
    delta: Secret<S>,
    setups: BTreeMap<ShareIndex, extension::Setup<Base>>,
}

/// The set-up after its second round.
#[derive(Debug)]
pub struct Grown<S: Scalar> {
    parties: Parties,
    delta: Secret<S>,
    halves: BTreeMap<ShareIndex, Half>,
}

#[derive(Debug)]
struct Half {
    sender: Option<extension::Setup<Base>>,
    root: extension::Receiver,
    receiver: extension::Receiver,
    received: ReceivedTransfers,
}

/// What is left of a set-up for later runs: extensions of each pair in both directions. Each run has seeds that follow from theirs, and draws a MAC
/// key of its own: a check that fails shows an honest party's key to whoever made it fail (`spec/mpc.md`).
#[derive(Debug)]
pub struct Transfers {
    parties: Parties,
    pairs: Pairs,
}

/// A run on transfers from before, after it has drawn its MAC key.
#[derive(Debug)]
pub struct Keyed<S: Scalar> {
    parties: Parties,
    pub(super) delta: Secret<S>,
    halves: BTreeMap<ShareIndex, (extension::Sender, extension::Receiver, ReceivedTransfers)>,
}

/// The set-up after its third round.
#[derive(Debug)]
pub struct Opening<S: Scalar> {
    parties: Parties,
    delta: Secret<S>,
    links: Opened,
    /// What later runs may use, if this is the first.
    transfers: Option<Transfers>,
}

type Opened = BTreeMap<ShareIndex, (extension::Sender, extension::Receiver, copee::Sender, ReceivedTransfers)>;

/// Transfers with each other party, in both directions.
pub type Pairs = BTreeMap<ShareIndex, (extension::Sender, extension::Receiver)>;
/// Products with a fixed factor, of each other party's and of ours.
pub(super) type Links = BTreeMap<ShareIndex, (copee::Sender, copee::Receiver)>;

/// A party with its MAC key, ready to make triples.
#[derive(Debug)]
pub struct Party<S: Scalar> {
    pub(super) parties: Parties,
    pub(super) delta: Secret<S>,
    pub(super) pairs: Pairs,
    /// What gives MACs: to our values by the others' keys, to theirs by ours.
    pub(super) links: Links,
    pub(super) batch: u64,
}

impl<S: Scalar> Mesh<S> {
    /// Begins: draws the MAC key.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn begin(parties: Parties, rng: &mut (impl CryptoRng + ?Sized)) -> Result<(Asked<S>, Messages), Misuse> {
        let delta = Secret::new(S::random(rng));
        let (mut setups, mut messages) = (BTreeMap::new(), Messages::new());
        for party in parties.others() {
            let (setup, ask) = extension::Setup::<Base>::new(parties.to(party)?, K, rng)?;
            setups.insert(party, setup);
            messages.insert(party, ask.0);
        }
        Ok((Asked { parties, delta, setups }, messages))
    }
}

impl<S: Scalar> Asked<S> {
    /// Answers the questions, and extends with the bits of the MAC key.
    ///
    /// # Errors
    /// [`Fault::Party`]; [`Misuse::Parties`].
    pub fn handle(
        mut self,
        messages: &Messages<impl AsRef<[u8]>>,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Grown<S>, Messages), Fault> {
        let (mut halves, mut out) = (BTreeMap::new(), Messages::new());
        for (party, bytes) in self.parties.received(messages)? {
            let session = self.parties.to(party)?.reversed();
            expect_len(bytes, base::Ask::length::<Base>(extension::BASE)).map_err(Fault::theirs(party))?;
            let ask = base::Ask(bytes.to_vec());
            let grown = extension::Receiver::new::<Base>(session, K, &ask, rng);
            let (receiver, extension::Grown(mut message)) = grown.map_err(Fault::of(party))?;
            let run = receiver.for_run(&self.parties.id());
            let (run, extension, received) = run.extend(bits(&self.delta), rng)?;
            message.extend_from_slice(&extension.0);
            out.insert(party, message);
            let sender = self.setups.remove(&party);
            halves.insert(party, Half { sender, root: receiver, receiver: run, received });
        }
        Ok((Grown { parties: self.parties, delta: self.delta, halves }, out))
    }
}

impl<S: Scalar> Grown<S> {
    /// Ends the extensions' set-up, and opens COPEe's trees.
    ///
    /// # Errors
    /// [`Fault::Party`]; [`Misuse::Parties`].
    pub fn handle(mut self, messages: &Messages<impl AsRef<[u8]>>) -> Result<(Opening<S>, Messages), Fault> {
        let (mut links, mut pairs, mut out) = (Opened::new(), BTreeMap::new(), Messages::new());
        let first = extension::Grown::length::<Base>(K)?;
        let second = extension::Extension::length(K, copee::BITS)?;
        for (party, bytes) in self.parties.received(messages)? {
            let (grown, extension) = split(party, bytes, first, first + second)?;
            let Some(Half { sender: Some(sender), root, receiver, received }) = self.halves.remove(&party) else {
                return Err(Misuse::Parties.into());
            };
            let fault = Fault::of(party);
            let made = sender.finish(&extension::Grown(grown.to_vec())).map_err(&fault)?;
            let (sender, input, opening) =
                open(&self.parties, party, DIGIT, made.for_run(&self.parties.id()), extension)?;
            out.insert(party, opening);
            links.insert(party, (sender, receiver, input, received));
            pairs.insert(party, (made, root));
        }
        let transfers = Some(Transfers { parties: self.parties.clone(), pairs });
        Ok((Opening { parties: self.parties, delta: self.delta, links, transfers }, out))
    }
}

impl<S: Scalar> Opening<S> {
    /// Ends the set-up. Returns what it leaves to later runs too, if this is the first.
    ///
    /// # Errors
    /// [`Fault::Party`]; [`Misuse::Parties`].
    pub fn handle(mut self, messages: &Messages<impl AsRef<[u8]>>) -> Result<(Party<S>, Option<Transfers>), Fault> {
        let (mut pairs, mut links) = (Pairs::new(), Links::new());
        for (party, bytes) in self.parties.received(messages)? {
            let session = self.parties.to(party)?.reversed();
            let Some((sender, receiver, input, received)) = self.links.remove(&party) else {
                return Err(Misuse::Parties.into());
            };
            let opening = copee::Opening(bytes.to_vec());
            let key = copee::Receiver::new(&session, DIGIT, &self.delta, received.into_seeds(), &opening);
            pairs.insert(party, (sender, receiver));
            links.insert(party, (input, key.map_err(Fault::of(party))?));
        }
        Ok((Party { parties: self.parties, delta: self.delta, pairs, links, batch: 0 }, self.transfers))
    }
}

/// The choices with which a fixed factor, as a MAC key, enters COPEe.
pub(super) fn bits<S: Scalar>(factor: &Secret<S>) -> Choices {
    Choices::of_scalars(core::slice::from_ref(factor.expose()))
}

/// Takes the transfers with the bits of a party's fixed factor, as its MAC key, and opens COPEe's trees to it.
pub(super) fn open(
    parties: &Parties,
    party: ShareIndex,
    digit: u8,
    sender: extension::Sender,
    extension: &[u8],
) -> Result<(extension::Sender, copee::Sender, Vec<u8>), Fault> {
    let (sender, sent) = sender.extend(copee::BITS, extension).map_err(Fault::of(party))?;
    let (input, opening) = copee::Sender::new(&parties.to(party)?, digit, &sent.into_seeds())?;
    Ok((sender, input, opening.0))
}

impl Transfers {
    /// Begins a run of the same parties: draws its MAC key. All parties name the same `run`, which must be new. Without a public-key operation, in two
    /// rounds.
    ///
    /// Runs on the same transfers are as batches of one extension: after a failure in any of them the transfers may not be used again.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn key<S: Scalar>(
        &self,
        run: [u8; 32],
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Keyed<S>, Messages), Misuse> {
        let delta = Secret::new(S::random(rng));
        let (mut halves, mut out) = (BTreeMap::new(), Messages::new());
        for (party, (sender, receiver)) in &self.pairs {
            let (receiver, extension, received) = receiver.for_run(&run).extend(bits(&delta), rng)?;
            out.insert(*party, extension.0);
            halves.insert(*party, (sender.for_run(&run), receiver, received));
        }
        Ok((Keyed { parties: self.parties.for_run(run), delta, halves }, out))
    }
}

impl<S: Scalar> Keyed<S> {
    /// Opens COPEe's trees.
    ///
    /// # Errors
    /// [`Fault::Party`]; [`Misuse::Parties`].
    pub fn handle(mut self, messages: &Messages<impl AsRef<[u8]>>) -> Result<(Opening<S>, Messages), Fault> {
        let (mut links, mut out) = (Opened::new(), Messages::new());
        for (party, bytes) in self.parties.received(messages)? {
            let Some((sender, receiver, received)) = self.halves.remove(&party) else {
                return Err(Misuse::Parties.into());
            };
            let (sender, input, opening) = open(&self.parties, party, DIGIT, sender, bytes)?;
            out.insert(party, opening);
            links.insert(party, (sender, receiver, input, received));
        }
        Ok((Opening { parties: self.parties, delta: self.delta, links, transfers: None }, out))
    }
}

impl<S: Scalar> Party<S> {
    /// Our summand of the MAC key Delta.
    #[must_use]
    pub const fn key(&self) -> &Secret<S> {
        &self.delta
    }
}
