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
const DIGIT: u8 = 3;

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
    receiver: extension::Receiver,
    received: ReceivedTransfers,
}

/// The set-up after its third round.
#[derive(Debug)]
pub struct Opening<S: Scalar> {
    parties: Parties,
    delta: Secret<S>,
    links: BTreeMap<ShareIndex, (extension::Sender, extension::Receiver, copee::Sender, ReceivedTransfers)>,
}

/// What is set up with one other party, in both directions.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) sender: extension::Sender,
    pub(super) receiver: extension::Receiver,
    pub(super) input: copee::Sender,
    pub(super) key: copee::Receiver,
}

/// A party with its MAC key, ready to make triples.
#[derive(Debug)]
pub struct Party<S: Scalar> {
    pub(super) parties: Parties,
    pub(super) delta: Secret<S>,
    pub(super) links: BTreeMap<ShareIndex, Link>,
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
        messages: &Messages,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Grown<S>, Messages), Fault> {
        let (mut halves, mut out) = (BTreeMap::new(), Messages::new());
        for (party, bytes) in self.parties.received(messages)? {
            let session = self.parties.to(party)?.reversed();
            expect_len(bytes, base::Ask::length::<Base>(extension::BASE)).map_err(Fault::theirs(party))?;
            let ask = base::Ask(bytes.to_vec());
            let grown = extension::Receiver::new::<Base>(session, K, &ask, rng);
            let (receiver, extension::Grown(mut message)) = grown.map_err(Fault::of(party))?;
            let choices = Choices::of_scalars(core::slice::from_ref(self.delta.expose()));
            let (receiver, extension, received) = receiver.extend(choices, rng)?;
            message.extend_from_slice(&extension.0);
            out.insert(party, message);
            halves.insert(party, Half { sender: self.setups.remove(&party), receiver, received });
        }
        Ok((Grown { parties: self.parties, delta: self.delta, halves }, out))
    }
}

impl<S: Scalar> Grown<S> {
    /// Ends the extensions' set-up, and opens COPEe's trees.
    ///
    /// # Errors
    /// [`Fault::Party`]; [`Misuse::Parties`].
    pub fn handle(mut self, messages: &Messages) -> Result<(Opening<S>, Messages), Fault> {
        let (mut links, mut out) = (BTreeMap::new(), Messages::new());
        let first = extension::Grown::length::<Base>(K)?;
        let second = extension::Extension::length(K, copee::BITS)?;
        for (party, bytes) in self.parties.received(messages)? {
            let (grown, extension) = split(party, bytes, first, first + second)?;
            let Some(Half { sender: Some(sender), receiver, received }) = self.halves.remove(&party) else {
                return Err(Misuse::Parties.into());
            };
            let fault = Fault::of(party);
            let sender = sender.finish(&extension::Grown(grown.to_vec())).map_err(&fault)?;
            let extension = extension::Extension(extension.to_vec());
            let (sender, sent) = sender.extend(copee::BITS, &extension).map_err(&fault)?;
            let (input, opening) = copee::Sender::new(&self.parties.to(party)?, DIGIT, &sent.into_seeds())?;
            out.insert(party, opening.0);
            links.insert(party, (sender, receiver, input, received));
        }
        Ok((Opening { parties: self.parties, delta: self.delta, links }, out))
    }
}

impl<S: Scalar> Opening<S> {
    /// Ends the set-up.
    ///
    /// # Errors
    /// [`Fault::Party`]; [`Misuse::Parties`].
    pub fn handle(mut self, messages: &Messages) -> Result<Party<S>, Fault> {
        let mut links = BTreeMap::new();
        for (party, bytes) in self.parties.received(messages)? {
            let session = self.parties.to(party)?.reversed();
            let Some((sender, receiver, input, received)) = self.links.remove(&party) else {
                return Err(Misuse::Parties.into());
            };
            let opening = copee::Opening(bytes.to_vec());
            let key = copee::Receiver::new(&session, DIGIT, &self.delta, received.into_seeds(), &opening);
            links.insert(party, Link { sender, receiver, input, key: key.map_err(Fault::of(party))? });
        }
        Ok(Party { parties: self.parties, delta: self.delta, links, batch: 0 })
    }
}

impl<S: Scalar> Party<S> {
    /// One for a run of the same parties, which has nothing of the transfers to make but what this one's set-up has left: seeds follow from its seeds,
    /// and the MAC key is the same. All parties name the same `run`, which must be new.
    ///
    /// Runs of one set-up are as batches of one party: after a failure in any of them neither this nor another one may be used.
    #[must_use]
    pub fn for_run(&self, run: [u8; 32]) -> Self {
        let link = |link: &Link| Link {
            sender: link.sender.for_run(&run),
            receiver: link.receiver.for_run(&run),
            input: link.input.for_run(&run),
            key: link.key.for_run(&run),
        };
        let links = self.links.iter().map(|(party, of)| (*party, link(of))).collect();
        let delta = Secret::new(*self.delta.expose());
        Self { parties: self.parties.for_run(run), delta, links, batch: 0 }
    }

    /// Our summand of the MAC key Delta.
    #[must_use]
    pub const fn key(&self) -> &Secret<S> {
        &self.delta
    }
}
