//! The agreement of a session: Diffie-Hellman signed by both sides, with three messages (ISO/IEC 9798-3; the protocol SIG-DH of Canetti and Krawczyk, EUROCRYPT
//! 2001). `spec/carriers.md` has the messages and what they promise.
//!
//! No false message ends an attempt, on either side: the initiator keeps its attempt until an answer is right, and the responder keeps
//! nothing of an attempt until its end is right. So whoever only adds messages delays nothing but by the time that checking them takes,
//! which is bounded ([`super::budget`]).

mod responder;
mod signature;

use aws_lc_rs::{
    agreement::{self, PrivateKey, UnparsedPublicKey, X25519},
    error::Unspecified,
    hkdf::{HKDF_SHA256, KeyType, Prk, Salt},
};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use core::fmt;
use rustls::crypto::SecureRandom;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

pub(super) use self::{
    responder::{Accepted, Responder},
    signature::{cost, is_right, sign},
};
use super::{
    frame::{Frame, Opening, Route, Signed, tag, take_array},
    session::{Key, Session},
};
use crate::{Fingerprint, Identity};

const PROTOCOL: &[u8] = b"theta-carrier/1";

/// The two nodes of a session, by the keys that are pinned for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) initiator: Fingerprint,
    pub(super) responder: Fingerprint,
}

impl Pair {
    /// The route of frames from the initiator.
    fn forward(&self) -> Route {
        Route { to: tag(&self.responder), from: tag(&self.initiator) }
    }

    fn backward(&self) -> Route {
        Route { to: tag(&self.initiator), from: tag(&self.responder) }
    }
}

/// What the initiator says at the end: which of its lives this is, and the first piece that it may still send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beginning {
    pub(super) boot: [u8; 16],
    pub(super) oldest: u64,
}

/// The initiator's side of one attempt. The frames that it makes may be sent any number of times.
pub(super) struct Attempt {
    pair: Pair,
    opening: Opening,
    private: PrivateKey,
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Attempt")
    }
}

impl Attempt {
    /// A new attempt. `None` only if the library fails.
    pub(super) fn new(pair: Pair, random: &dyn SecureRandom) -> Option<Self> {
        let mut attempt = [0; 16];
        random.fill(&mut attempt).ok()?;
        let mut seed = Zeroizing::new([0; 32]);
        random.fill(&mut *seed).ok()?;
        let (private, share) = half(&seed)?;
        Some(Self { pair, opening: Opening { attempt, share }, private })
    }

    /// The first message.
    pub(super) fn hello(&self) -> Bytes {
        Frame::Hello(self.opening).encode(self.pair.forward())
    }

    /// Whether an answer claims to be to this attempt.
    pub(super) fn is_answered_by(&self, attempt: &[u8; 16]) -> bool {
        self.opening.attempt == *attempt
    }

    /// Takes the second message, and makes the third and the session. `None`: the answer is false, and the attempt goes on.
    pub(super) fn finish(
        &self,
        (share, signed): (&[u8; 32], &Signed),
        identity: &Identity,
        beginning: Beginning,
    ) -> Option<(Bytes, Session)> {
        let shares = Shares { opening: self.opening, answer: *share };
        if !signature::is_right(&self.pair.responder, &statement(b"answer", &self.pair, &shares, None), signed) {
            return None;
        }
        let secrets = Secrets::agree(&self.private, share, &self.pair, &shares)?;
        let own = signature::sign(identity, &statement(b"finish", &self.pair, &shares, Some(&beginning)))?;
        let route = self.pair.forward();
        let mut sealed = BytesMut::new();
        sealed.put_slice(&beginning.boot);
        sealed.put_u64(beginning.oldest);
        own.put(&mut sealed);
        secrets.finish.seal(0, &mut sealed, 0)?;
        let frame = Frame::Finish { opening: self.opening, sealed: sealed.freeze() }.encode(route);
        Some((frame, Session::new(secrets.id, route, secrets.forward, secrets.backward)))
    }
}

/// Both halves of the key agreement.
struct Shares {
    opening: Opening,
    answer: [u8; 32],
}

/// A half of the key agreement from 32 random bytes.
fn half(seed: &[u8; 32]) -> Option<(PrivateKey, [u8; 32])> {
    let private = PrivateKey::from_private_key(&X25519, seed).ok()?;
    let share = private.compute_public_key().ok()?.as_ref().try_into().ok()?;
    Some((private, share))
}

/// What a side signs. All fields have fixed lengths.
fn statement(label: &[u8; 6], pair: &Pair, shares: &Shares, beginning: Option<&Beginning>) -> Vec<u8> {
    let mut statement = context(label, pair, shares);
    if let Some(beginning) = beginning {
        statement.extend_from_slice(&beginning.boot);
        statement.extend_from_slice(&beginning.oldest.to_be_bytes());
    }
    statement
}

fn context(label: &[u8; 6], pair: &Pair, shares: &Shares) -> Vec<u8> {
    let parts: [&[u8]; 9] = [
        PROTOCOL,
        b" ",
        label,
        b"\0",
        pair.initiator.as_bytes(),
        pair.responder.as_bytes(),
        &shares.opening.attempt,
        &shares.opening.share,
        &shares.answer,
    ];
    parts.concat()
}

/// The keys that both sides derive.
struct Secrets {
    finish: Key,
    id: [u8; 8],
    forward: Key,
    backward: Key,
}

impl Secrets {
    fn agree(private: &PrivateKey, share: &[u8; 32], pair: &Pair, shares: &Shares) -> Option<Self> {
        let salt = Salt::new(HKDF_SHA256, &Sha256::digest(context(b"secret", pair, shares)));
        let theirs = UnparsedPublicKey::new(&X25519, share);
        // The library refuses the shares of small order, whose secret everybody knows.
        agreement::agree(private, theirs, Unspecified, |secret| Ok(salt.extract(secret)))
            .ok()
            .and_then(|secret| Self::expand(&secret))
    }

    fn expand(secret: &Prk) -> Option<Self> {
        let key = |label: &[u8]| Key::new(&*derive::<32>(secret, label)?);
        Some(Self {
            finish: key(b"finish")?,
            id: *derive::<8>(secret, b"session")?,
            forward: key(b"forward")?,
            backward: key(b"backward")?,
        })
    }
}

/// The length of what is derived.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn derive<const N: usize>(secret: &Prk, label: &[u8]) -> Option<Zeroizing<[u8; N]>> {
    let mut derived = Zeroizing::new([0; N]);
    secret.expand(&[PROTOCOL, b" ", label], Length(N)).ok()?.fill(&mut *derived).ok()?;
    Some(derived)
}

/// Reads the third message's contents.
fn read_finish(plain: &mut Bytes) -> Option<(Beginning, Signed)> {
    let boot = take_array(plain)?;
    let oldest = plain.try_get_u64().ok()?;
    let signed = Signed::take(plain)?;
    plain.is_empty().then_some((Beginning { boot, oldest }, signed))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Side {
        identity: Identity,
        responder: Responder,
    }

    fn random() -> &'static dyn SecureRandom {
        rustls::crypto::aws_lc_rs::default_provider().secure_random
    }

    fn side() -> Side {
        let made = Identity::generate("node").unwrap();
        let identity = Identity::from_pem(&made.certificate_pem, &made.key_pem).unwrap();
        Side { identity, responder: Responder::new(random()).unwrap() }
    }

    const BEGINNING: Beginning = Beginning { boot: [7; 16], oldest: 5 };

    fn opening(hello: Bytes) -> Opening {
        match Frame::parse(hello) {
            Some((_, Frame::Hello(opening))) => opening,
            other => panic!("{other:?}"),
        }
    }

    fn answer(frame: Bytes) -> ([u8; 32], Signed) {
        match Frame::parse(frame) {
            Some((_, Frame::Answer { share, signed, .. })) => (share, signed),
            other => panic!("{other:?}"),
        }
    }

    fn end(frame: Bytes) -> (Opening, Bytes) {
        match Frame::parse(frame) {
            Some((_, Frame::Finish { opening, sealed })) => (opening, sealed),
            other => panic!("{other:?}"),
        }
    }

    fn pass(from: &mut Session, to: &mut Session, items: &[u8]) -> Bytes {
        let (_, frame) = from.seal(items).unwrap();
        let Some((_, Frame::Sealed { number, header, sealed, .. })) = Frame::parse(frame) else { panic!() };
        let opened = to.open(number, &header, &sealed).unwrap();
        to.keep(number);
        assert_eq!(to.open(number, &header, &sealed), None, "a second time");
        opened
    }

    #[test]
    fn both_sides_agree_and_the_end_counts_once() {
        let (a, mut b) = (side(), side());
        let pair = Pair { initiator: a.identity.fingerprint(), responder: b.identity.fingerprint() };
        let attempt = Attempt::new(pair, random()).unwrap();
        let opening = opening(attempt.hello());
        let first = answer(b.responder.answer(&opening, &pair, &b.identity).unwrap());
        let again = answer(b.responder.answer(&opening, &pair, &b.identity).unwrap());
        assert_eq!(first.0, again.0, "the responder keeps nothing, and answers the same");
        let (finish, mut forward) = attempt.finish((&first.0, &first.1), &a.identity, BEGINNING).unwrap();
        let (opened, sealed) = end(finish);
        let Accepted { mut session, beginning } = b.responder.accept(&opened, &sealed, &pair, random()).unwrap();
        assert_eq!(beginning, BEGINNING);
        assert_eq!(&pass(&mut forward, &mut session, b"there")[..], b"there");
        assert_eq!(&pass(&mut session, &mut forward, b"and back")[..], b"and back");
        assert!(b.responder.accept(&opened, &sealed, &pair, random()).is_none(), "recorded and played again");
        let later = answer(b.responder.answer(&opening, &pair, &b.identity).unwrap());
        assert_ne!(first.0, later.0, "no secret of before is left");
    }

    #[test]
    fn what_is_not_signed_by_the_pinned_key_is_nothing() {
        let (a, mut b, other) = (side(), side(), side());
        let pair = Pair { initiator: a.identity.fingerprint(), responder: b.identity.fingerprint() };
        let attempt = Attempt::new(pair, random()).unwrap();
        let opening = opening(attempt.hello());
        // Somebody in the middle answers with a share of its own, by its own key, or by the signature of the right node over another.
        let false_one = answer(other.responder.answer(&opening, &pair, &other.identity).unwrap());
        let right = answer(b.responder.answer(&opening, &pair, &b.identity).unwrap());
        assert!(attempt.finish((&false_one.0, &false_one.1), &a.identity, BEGINNING).is_none());
        assert!(attempt.finish((&false_one.0, &right.1), &a.identity, BEGINNING).is_none());
        // The signature of the right node, as the responder of somebody else's session.
        let third = Pair { initiator: other.identity.fingerprint(), ..pair };
        let elsewhere = answer(b.responder.answer(&opening, &third, &b.identity).unwrap());
        assert!(attempt.finish((&elsewhere.0, &elsewhere.1), &a.identity, BEGINNING).is_none());
        // The attempt is as good as before; but its end by another key than the initiator's counts for nothing, and hurts none.
        let (forged, _) = attempt.finish((&right.0, &right.1), &other.identity, BEGINNING).unwrap();
        let (opened, sealed) = end(forged);
        assert!(b.responder.accept(&opened, &sealed, &pair, random()).is_none());
        let (finish, _) = attempt.finish((&right.0, &right.1), &a.identity, BEGINNING).unwrap();
        let (opened, sealed) = end(finish);
        let mut bent = sealed.to_vec();
        bent[3] ^= 1;
        assert!(b.responder.accept(&opened, &bent, &pair, random()).is_none());
        assert!(b.responder.accept(&opened, &sealed, &pair, random()).is_some());
    }

    #[test]
    fn shares_of_small_order_are_refused() {
        let (a, b) = (side(), side());
        let pair = Pair { initiator: a.identity.fingerprint(), responder: b.identity.fingerprint() };
        let attempt = Attempt::new(pair, random()).unwrap();
        let opening = opening(attempt.hello());
        for share in [[0; 32], {
            let mut one = [0; 32];
            one[0] = 1;
            one
        }] {
            let shares = Shares { opening, answer: share };
            let signed = signature::sign(&b.identity, &statement(b"answer", &pair, &shares, None)).unwrap();
            assert!(attempt.finish((&share, &signed), &a.identity, BEGINNING).is_none(), "{share:?}");
        }
    }
}
