//! The side that is called.

use core::fmt;

use aws_lc_rs::{
    agreement::PrivateKey,
    hkdf::{HKDF_SHA256, Prk},
};
use bytes::Bytes;
use rustls::crypto::SecureRandom;
use zeroize::Zeroizing;

use super::{Beginning, Length, PROTOCOL, Pair, Secrets, Shares, half, read_finish, signature, statement};
use crate::{
    Identity,
    carrier::{
        frame::{Frame, Opening},
        session::Session,
    },
};

/// Answers attempts of one peer, and keeps nothing of any: its half of the agreement follows from a secret and from how the attempt opens. The
/// secret is another one after each session, so that no end of an attempt counts twice, and none of before can be computed any more.
pub(in crate::carrier) struct Responder {
    secret: Zeroizing<[u8; 32]>,
}

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Responder")
    }
}

/// The end of an attempt that was right.
#[derive(Debug)]
pub(in crate::carrier) struct Accepted {
    pub(in crate::carrier) session: Session,
    pub(in crate::carrier) beginning: Beginning,
}

impl Responder {
    /// `None` only if there is no randomness.
    pub(in crate::carrier) fn new(random: &dyn SecureRandom) -> Option<Self> {
        let mut secret = Zeroizing::new([0; 32]);
        random.fill(&mut *secret).ok()?;
        Some(Self { secret })
    }

    /// The second message.
    pub(in crate::carrier) fn answer(&self, opening: &Opening, pair: &Pair, identity: &Identity) -> Option<Bytes> {
        let (_, share) = self.half(opening, pair)?;
        let shares = Shares { opening: *opening, answer: share };
        let signed = signature::sign(identity, &statement(b"answer", pair, &shares, None))?;
        Some(Frame::Answer { attempt: opening.attempt, share, signed }.encode(pair.backward()))
    }

    /// Takes the third message. `None`: it is false, and nothing has changed.
    pub(in crate::carrier) fn accept(
        &mut self,
        opening: &Opening,
        sealed: &[u8],
        pair: &Pair,
        random: &dyn SecureRandom,
    ) -> Option<Accepted> {
        let (private, share) = self.half(opening, pair)?;
        let shares = Shares { opening: *opening, answer: share };
        let secrets = Secrets::agree(&private, &opening.share, pair, &shares)?;
        let mut plain = secrets.finish.open(0, &[], sealed)?;
        let (beginning, signed) = read_finish(&mut plain)?;
        if !signature::is_right(&pair.initiator, &statement(b"finish", pair, &shares, Some(&beginning)), &signed) {
            return None;
        }
        *self = Self::new(random)?;
        let session = Session::new(secrets.id, pair.backward(), secrets.backward, secrets.forward);
        Some(Accepted { session, beginning })
    }

    fn half(&self, opening: &Opening, pair: &Pair) -> Option<(PrivateKey, [u8; 32])> {
        let secret = Prk::new_less_safe(HKDF_SHA256, &*self.secret);
        let label: [&[u8]; 6] = [
            PROTOCOL,
            b" half",
            pair.initiator.as_bytes(),
            pair.responder.as_bytes(),
            &opening.attempt,
            &opening.share,
        ];
        let mut seed = Zeroizing::new([0; 32]);
        secret.expand(&label, Length(32)).ok()?.fill(&mut *seed).ok()?;
        half(&seed)
    }
}
