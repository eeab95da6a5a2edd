//! Whose message it is, and whether it is passed on.

use std::{collections::HashMap, time::Instant};

use bytes::Bytes;
use theta_network::{Fingerprint, carrier::Vouched};

use crate::{
    bundle::{Numbers, is_of_another_version, number},
    members::Members,
    rate::{Rate, Spent},
};

/// What a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Its author has said it, now: the author, and what it says.
    New(Fingerprint, Bytes),
    /// It came before, or is too old.
    Again,
    /// Its author has said too much.
    TooMuch,
    /// This node knows no such member, or not yet.
    Stranger,
    /// It has a format that this node does not know: its author may be newer than this node.
    Unknown,
    /// Its author has not signed it, or it is no message.
    False,
}

/// So many frames for one reader cost as much as a message.
const FRAMES_OF_A_MESSAGE: usize = 64;

/// What is known of one author.
#[derive(Debug)]
struct Author {
    numbers: Numbers,
    spent: Spent,
}

/// The authors of messages, by their keys.
#[derive(Debug)]
pub(crate) struct Authors {
    own: Fingerprint,
    context: Vec<u8>,
    /// The longest message, in bytes.
    longest: usize,
    known: HashMap<Fingerprint, Author>,
}

impl Authors {
    pub(crate) fn new(own: Fingerprint, context: Vec<u8>, longest: usize) -> Self {
        Self { own, context, longest, known: HashMap::new() }
    }

    /// Judges a message. Nothing is kept of one that is not its author's; the signature, which costs most, is looked at last.
    pub(crate) fn judge(&mut self, message: Bytes, members: &Members, rate: &Rate, now: Instant) -> Verdict {
        let bytes = message.len();
        if bytes > self.longest {
            // A neighbour whose operator has raised the bound already passes it on in good faith.
            return Verdict::TooMuch;
        }
        let Some(vouched) = Vouched::read(message) else { return Verdict::False };
        let author = vouched.author();
        if is_of_another_version(vouched.body()) {
            // Who has been updated passes it on in good faith. It is not passed on from here, so that nothing comes of one that was invented.
            return Verdict::Unknown;
        }
        let Some(number) = number(vouched.body()) else { return Verdict::False };
        if author == self.own {
            // What this node has said comes back when gossipsub has forgotten it, or from a life before this one.
            return Verdict::Again;
        }
        if members.present().by_key(&author).is_none() {
            return Verdict::Stranger;
        }
        if let Some(known) = self.known.get(&author) {
            if !known.numbers.is_new(number) {
                return Verdict::Again;
            }
            if !known.spent.may(rate, now) {
                return Verdict::TooMuch;
            }
        }
        if !vouched.is_right(&self.context) {
            return Verdict::False;
        }
        let known =
            self.known.entry(author).or_insert_with(|| Author { numbers: Numbers::default(), spent: Spent::new(now) });
        known.numbers.take(number);
        known.spent.take(rate, bytes, now);
        Verdict::New(author, vouched.body().clone())
    }

    /// Counts the frames of a message, for its author: many small ones cost their reader more than their bytes.
    pub(crate) fn charge(&mut self, author: &Fingerprint, frames: usize, rate: &Rate, now: Instant) {
        let Some(known) = self.known.get_mut(author) else { return };
        for _ in 0..frames / FRAMES_OF_A_MESSAGE {
            known.spent.take(rate, 0, now);
        }
    }

    /// Forgets those who are members no more.
    pub(crate) fn keep(&mut self, members: &Members) {
        let present = members.present();
        self.known.retain(|author, _| present.by_key(author).is_some());
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use theta_names::NodeId;
    use theta_network::{Identity, carrier::Carried, mesh::MeshPeer};

    use super::*;
    use crate::bundle::{Outgoing, context};

    fn identity() -> Identity {
        let made = Identity::generate("node").unwrap();
        Identity::from_pem(&made.certificate_pem, &made.key_pem).unwrap()
    }

    fn node(number: u16) -> NodeId {
        NodeId::try_from(number).unwrap()
    }

    fn message(author: &Identity, number: u64, group: &str) -> Bytes {
        let mut outgoing = Outgoing::new(number);
        outgoing.put(&Carried { node: node(1), frame: Bytes::from_static(b"frame") });
        outgoing.sign(author, &context(group)).unwrap()
    }

    #[test]
    fn a_message_counts_once_and_in_its_authors_name_alone() {
        let (own, member, stranger) = (identity(), identity(), identity());
        let members = Members::default();
        let peer = |id, of: &Identity| MeshPeer { id: node(id), address: String::new(), certificate: of.fingerprint() };
        members.replace(vec![peer(2, &member)]);
        let rate = Rate::shared(1_000, 1 << 20, 1, Duration::from_secs(1));
        let mut authors = Authors::new(own.fingerprint(), context("group"), 1_000);
        let now = Instant::now();
        let mut judge = |message: Bytes| authors.judge(message, &members, &rate, now);

        assert!(
            matches!(judge(message(&member, 7, "group")), Verdict::New(author, _) if author == member.fingerprint())
        );
        assert_eq!(judge(message(&member, 7, "group")), Verdict::Again);
        assert_eq!(judge(message(&member, 8, "another group")), Verdict::False);
        let mut bent = message(&member, 9, "group").to_vec();
        *bent.last_mut().unwrap() ^= 1;
        assert_eq!(judge(bent.into()), Verdict::False);
        assert!(matches!(judge(message(&member, 9, "group")), Verdict::New(..)), "a false one takes nobody's number");
        assert_eq!(judge(message(&stranger, 1, "group")), Verdict::Stranger);
        assert_eq!(judge(message(&own, 1, "group")), Verdict::Again);
        assert_eq!(judge(Bytes::from_static(b"noise")), Verdict::False);
        let newer = Vouched::sign(&member, &context("group"), &[2, 0, 0]).unwrap();
        assert_eq!(judge(newer), Verdict::Unknown, "nobody is blamed for a format of tomorrow");
        for broken in [&[][..], &[1, 0, 0]] {
            let broken = Vouched::sign(&member, &context("group"), broken).unwrap();
            assert_eq!(judge(broken), Verdict::False);
        }
        let mut long = Outgoing::new(10);
        long.put(&Carried { node: node(1), frame: Bytes::from(vec![0; 1_000]) });
        assert_eq!(judge(long.sign(&member, &context("group")).unwrap()), Verdict::TooMuch);

        let said =
            (10..5_000).take_while(|number| judge(message(&member, *number, "group")) != Verdict::TooMuch).count();
        assert!((995..=1_001).contains(&said), "{said}");
        members.replace(Vec::new());
        authors.keep(&members);
        assert!(authors.known.is_empty());
    }
}
