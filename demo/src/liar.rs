//! A node that is honest in everything but the shares that it sends. The product has nothing of it: it is
//! in `theta-demo` alone.

use std::{
    collections::HashMap,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use clap::Args;
use prost::Message;
use theta::{
    exit::Failure,
    node::{self, RunArgs},
};
use theta_names::NodeId;
use theta_network::{PeerStatus, SendError, Transport};
use theta_service::Node;
use theta_wire::peer::{Envelope, INSTANCES};

/// The options of `theta node run`.
#[derive(Debug, Args)]
pub(crate) struct LiarArgs {
    #[command(flatten)]
    run: RunArgs,
}

/// `theta-demo _x_liar`.
pub(crate) fn run(args: &LiarArgs) -> Result<(), Failure> {
    node::serve(&args.run, false, |config| {
        Node::start_with_transport(config, |transport, inbound| (Arc::new(Lying::new(transport)), inbound))
    })
}

/// Passes messages on, but with the share that the node sent for an earlier request: one that decodes, is of the
/// right key and the right sender, and is false.
struct Lying {
    honest: Arc<dyn Transport>,
    memory: Mutex<Memory>,
}

/// A message's kind and number.
type Place = (u32, u32);

/// The kind of messages of FROST that begin with a share (`spec/frost.md`), and its length.
const FROST_KIND: u32 = 3;
const FROST_SHARE: usize = 32;
/// The kind of shares of ECDSA (`spec/ecdsa.md`), and their length with the name of a presignature and R, which come first.
const ECDSA_KIND: u32 = 1;
const ECDSA_NAMED: usize = 65;
const ECDSA_LENGTH: usize = 97;

/// Which messages take each other's place, and which part of such a message is the share. Slots of FROST and ECDSA have running numbers, which begin at
/// a random one; those of other schemes are always the same, and their payload is the share.
fn share_in((kind, number): Place, length: usize) -> ((Place, usize), Range<usize>) {
    match (kind, length) {
        (FROST_KIND, FROST_SHARE..) => (((kind, 0), 0), 0..FROST_SHARE),
        (ECDSA_KIND, ECDSA_LENGTH) => (((kind, 0), length), ECDSA_NAMED..length),
        _ => (((kind, number), length), 0..length),
    }
}

#[derive(Default)]
struct Memory {
    /// The latest share of each sort.
    latest: HashMap<(Place, usize), Bytes>,
    /// What was sent for an instance, to tell everybody the same.
    told: HashMap<(Bytes, Place), Bytes>,
}

impl Lying {
    fn new(honest: Arc<dyn Transport>) -> Self {
        Self { honest, memory: Mutex::default() }
    }

    fn falsify(&self, message: Bytes) -> Bytes {
        let Ok(mut envelope) = Envelope::decode(message.clone()) else { return message };
        if !is_of_protocol(&envelope) {
            return message;
        }
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        envelope.payload =
            memory.substitute(&envelope.instance_id, (envelope.kind, envelope.number), &envelope.payload);
        envelope.encode_to_vec().into()
    }
}

/// Whether a protocol sends this in one of its slots. There are no shares in anything else: custodians and the certifiers of slots have streams of
/// their own, and what orchestration itself asks or announces in an instance has kinds above those of all protocols.
fn is_of_protocol(envelope: &Envelope) -> bool {
    envelope.stream == INSTANCES && u16::try_from(envelope.kind).is_ok()
}

impl Memory {
    fn substitute(&mut self, instance: &Bytes, place: Place, payload: &Bytes) -> Bytes {
        let Self { latest, told } = self;
        let told = told.entry((instance.clone(), place)).or_insert_with(|| {
            let (sort, part) = share_in(place, payload.len());
            let earlier = latest.insert(sort, payload.slice(part.clone()));
            // The very first share has no earlier one to be replaced by.
            let Some(earlier) = earlier else { return payload.clone() };
            let (before, rest) = payload.split_at(part.start);
            let after = rest.get(part.len()..).unwrap_or_default();
            Bytes::from([before, &*earlier, after].concat())
        });
        told.clone()
    }
}

impl Transport for Lying {
    fn local(&self) -> NodeId {
        self.honest.local()
    }

    fn peers(&self) -> Vec<NodeId> {
        self.honest.peers()
    }

    fn send(&self, to: NodeId, message: Bytes) -> Result<(), SendError> {
        self.honest.send(to, self.falsify(message))
    }

    fn broadcast(&self, message: Bytes) -> Vec<SendError> {
        self.honest.broadcast(self.falsify(message))
    }

    fn status(&self) -> Vec<PeerStatus> {
        self.honest.status()
    }
}

#[cfg(test)]
mod tests {
    use theta_wire::peer::{CUSTODY, SLOTS};

    use super::*;

    #[test]
    fn only_messages_of_protocols_are_falsified() {
        let is_false = |stream, kind| is_of_protocol(&Envelope { stream, kind, ..Envelope::default() });
        assert!(is_false(INSTANCES, 1) && is_false(INSTANCES, u32::from(u16::MAX)));
        // A request to send again, and the announcement of a filling.
        assert!(!is_false(INSTANCES, u32::MAX) && !is_false(INSTANCES, u32::MAX - 1));
        assert!(!is_false(CUSTODY, 0) && !is_false(SLOTS, 0));
    }

    #[test]
    fn shares_of_earlier_requests_are_sent_and_the_same_to_all() {
        let mut memory = Memory::default();
        let (a, b, share, proof) = (Bytes::from_static(b"a"), Bytes::from_static(b"b"), (1, 0), (1, 1));
        let (first, second) = (Bytes::from_static(b"first"), Bytes::from_static(b"other"));
        assert_eq!(memory.substitute(&a, share, &first), first);
        assert_eq!(memory.substitute(&b, share, &second), first);
        assert_eq!(memory.substitute(&b, share, &second), first, "the same to all");
        assert_eq!(memory.substitute(&b, proof, &second), second, "another message of the same request");
        let long = Bytes::from_static(b"another scheme's");
        // FROST and ECDSA number their slots anew for each request, and tell more than the share.
        let bytes = |byte: u8, length: usize| Bytes::from(vec![byte; length]);
        assert_eq!(memory.substitute(&a, (3, 700), &bytes(1, 40)), bytes(1, 40));
        let frost = memory.substitute(&b, (3, 900), &bytes(2, 33));
        assert_eq!((&frost[..32], &frost[32..]), (&[1; 32][..], &[2][..]));
        assert_eq!(memory.substitute(&a, (1, 7), &bytes(1, 97)), bytes(1, 97));
        let ecdsa = memory.substitute(&b, (1, 9), &bytes(2, 97));
        assert_eq!((&ecdsa[..65], &ecdsa[65..]), (&[2; 65][..], &[1; 32][..]));
        assert_eq!(memory.substitute(&Bytes::from_static(b"c"), share, &long), long);
    }
}
