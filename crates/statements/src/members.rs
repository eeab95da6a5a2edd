//! Changes of a group's members, as clients ask for them.

use theta_groups::Transcript;
use theta_names::Operation;
use theta_names::codec::{DecodeError, Reader, Writer};

/// The version of the encoding.
const FORMAT: u8 = 1;
/// The tag of the statement, which no change of a key has.
const TAG: u8 = 19;
/// That of the statement which takes a change back.
const TAKE_BACK: u8 = 21;
/// How the ledger's encoding of a renewal begins (`spec/ledger.md`, Entries).
const RENEWAL: u8 = 7;
/// The longest encoded change in bytes: a number, and a card.
pub const MOST_MEMBER_CHANGE: usize = 8 << 10;
/// The longest proof in bytes: a warrant of 16 cards and 1,024 operators' signatures.
pub const MOST_MEMBER_PROOF: usize = 96 << 10;

/// A change of the group's members, with a nonce that makes the request unique.
///
/// What the change is the ledger knows: this crate has its bytes alone. It is encoded as the action of an entry (`spec/ledger.md`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemberRequest {
    /// 32 random bytes, drawn by the client or by the first approver; never used twice.
    pub nonce: [u8; 32],
    /// The encoded change.
    pub change: Vec<u8>,
    /// What proves the change, if the client has it: for a replacement the signature of the member's operator (64 bytes), or a warrant.
    /// Otherwise empty; a renewal proves itself.
    pub proof: Vec<u8>,
}

impl MemberRequest {
    /// The statement that policies decide on, approvals consent to and clients sign: format (1), the tag 19 (1), nonce, `[change]`,
    /// `[proof]`. Because of the nonce, an approval or signature is good for one change only.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Writer::new(FORMAT).u8(TAG).raw(&self.nonce).bytes(&self.change).bytes(&self.proof).finish()
    }

    /// Reads what [`MemberRequest::encode`] wrote; nothing else is accepted.
    ///
    /// # Errors
    /// [`DecodeError`] with the first thing that is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != FORMAT {
            return Err(DecodeError::Field("a format of another release"));
        }
        if reader.u8()? != TAG {
            return Err(DecodeError::Field("a request for a change of members"));
        }
        let nonce = reader.array()?;
        let change = reader.bytes_within(MOST_MEMBER_CHANGE)?.to_vec();
        let proof = reader.bytes_within(MOST_MEMBER_PROOF)?.to_vec();
        reader.end(Self { nonce, change, proof })
    }

    /// Whether the change is said to prove itself, so that no member need consent to it: it is a renewal, or comes with a proof. The
    /// group does not take it if it is not so.
    #[must_use]
    pub fn claims_proof(&self) -> bool {
        !self.proof.is_empty() || self.change.first() == Some(&RENEWAL)
    }

    /// The operation that policies decide on: [`Operation::GroupRenew`] for what proves itself, otherwise [`Operation::GroupChange`].
    #[must_use]
    pub fn operation(&self) -> Operation {
        if self.claims_proof() { Operation::GroupRenew } else { Operation::GroupChange }
    }

    /// The request's name at the nodes: a hash of all of it.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        Transcript::new("theta/custody/members/v1").with("request", &self.encode()).finish32()
    }
}

/// That a change of the members which the group has not decided come to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeBackRequest {
    /// 32 random bytes, drawn by the client or by the first approver; never used twice.
    pub nonce: [u8; 32],
    /// The encoded change, whoever asked for it and how often.
    pub change: Vec<u8>,
}

impl TakeBackRequest {
    /// The statement that policies, approvals and signatures are about: format (1), the tag 21 (1), nonce, `[change]`. Who may ask for a
    /// change may take it back, and a request for a change takes none back.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Writer::new(FORMAT).u8(TAKE_BACK).raw(&self.nonce).bytes(&self.change).finish()
    }

    /// The request's name at the nodes: a hash of all of it.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        Transcript::new("theta/custody/take-back/v1").with("request", &self.encode()).finish32()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(change: &[u8], proof: &[u8]) -> MemberRequest {
        MemberRequest { nonce: [3; 32], change: change.to_vec(), proof: proof.to_vec() }
    }

    #[test]
    fn what_is_read_is_what_was_written() {
        for request in [request(&[8, 0, 2], &[]), request(&[6, 0, 1, 9], &[7; 64]), request(&[], &[])] {
            let bytes = request.encode();
            assert_eq!(MemberRequest::decode(&bytes).as_ref(), Ok(&request));
            assert!((0..bytes.len()).all(|len| MemberRequest::decode(&bytes[..len]).is_err()));
            assert!(MemberRequest::decode(&[&bytes[..], &[0]].concat()).is_err());
        }
        let long = request(&vec![5; MOST_MEMBER_CHANGE + 1], &[]);
        assert!(MemberRequest::decode(&long.encode()).is_err());
    }

    #[test]
    fn policies_tell_what_proves_itself_from_what_does_not() {
        assert_eq!(request(&[8, 0, 2], &[]).operation(), Operation::GroupChange);
        assert_eq!(request(&[6, 0, 2], &[]).operation(), Operation::GroupChange);
        assert_eq!(request(&[6, 0, 2], &[1; 64]).operation(), Operation::GroupRenew);
        assert_eq!(request(&[7, 0, 2], &[]).operation(), Operation::GroupRenew);
    }

    #[test]
    fn what_takes_a_change_back_is_no_request_for_one() {
        let asked = request(&[8, 0, 2], &[]);
        let back = TakeBackRequest { nonce: asked.nonce, change: asked.change.clone() };
        assert!(MemberRequest::decode(&back.encode()).is_err());
        assert_ne!(back.digest(), asked.digest());
        let others =
            [TakeBackRequest { nonce: [4; 32], ..back.clone() }, TakeBackRequest { change: vec![8, 0, 3], ..back }];
        assert!(others.iter().all(|other| other.encode() != back.encode() && other.digest() != back.digest()));
    }

    #[test]
    fn every_byte_counts() {
        let one = request(&[6, 0, 2], &[1; 64]);
        let others = [
            request(&[6, 0, 3], &[1; 64]),
            request(&[6, 0, 2], &[2; 64]),
            MemberRequest { nonce: [4; 32], ..one.clone() },
        ];
        assert!(others.iter().all(|other| other.digest() != one.digest() && other.encode() != one.encode()));
    }
}
