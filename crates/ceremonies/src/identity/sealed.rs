//! Secrets for many recipients in one broadcast: hashed ElGamal on ristretto255 under one ephemeral key, to keys that last for
//! one ceremony.
//!
//! The keystream for recipient i is a hash of ceremony, dealer, slot, recipient and ek_i * r. R = g * r is sent along
//! with a proof of knowledge of r that is bound to dealer, ceremony and slot: a party that copies another's R or
//! ciphertexts has no proof, and what is disclosed about one dealer's R reveals nothing about another's. There is no
//! authentication beyond the dealer's signature: the opened values are checked against commitments.

use rand_core::CryptoRng;
use theta_groups::{Group, Ristretto255, RistrettoScalar, Scalar, Secret, Transcript};
use theta_rounds::{Malformed, PartyId};
use theta_sharing::Encoded;
use theta_sharing::dleq::{self, DleqClaim, DleqProof, Generator};

use crate::codec::{Reader, Writer};
use crate::participant::Participant;
use crate::plan::CeremonyId;
use crate::schnorr::{self, SIGNATURE_LEN, Signature};
use crate::statement::StatementSlot;

/// The ceremony, dealer and slot to which sealed secrets belong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) ceremony: &'a CeremonyId,
    pub(crate) dealer: PartyId,
    pub(crate) slot: StatementSlot,
}

impl Place<'_> {
    fn transcript(&self, domain: &'static str) -> Transcript {
        Transcript::new(domain)
            .with("ceremony", self.ceremony.as_bytes())
            .with("dealer", &self.dealer.get().to_be_bytes())
            .with("slot", &self.slot.encode())
    }
}

/// A recipient and its encryption key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipient<'a> {
    pub(crate) party: PartyId,
    pub(crate) key: &'a Encoded<Ristretto255>,
}

/// R, the proof of knowledge of its logarithm, and one ciphertext for each recipient in their order.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    ephemeral: Encoded<Ristretto255>,
    proof: Signature,
    ciphertexts: Vec<Vec<u8>>,
}

impl Sealed {
    /// Encrypts one plaintext to each recipient.
    pub(crate) fn seal<'a>(
        place: Place<'_>,
        to: impl IntoIterator<Item = (Recipient<'a>, Secret<Vec<u8>>)>,
        rng: &mut impl CryptoRng,
    ) -> Self {
        let r = Secret::new(RistrettoScalar::random(rng));
        let ephemeral = Encoded::new(Ristretto255::mul_base(r.expose()));
        let proof = schnorr::sign(&r, &ephemeral, &place.transcript("theta/ceremony/ephemeral/v1"));
        let ciphertexts = to
            .into_iter()
            .map(|(to, plaintext)| {
                let shared = agreed(to.key, &r);
                masked(place, to.party, &ephemeral, shared.expose(), plaintext.expose())
            })
            .collect();
        Self { ephemeral, proof, ciphertexts }
    }

    /// Appends R, proof, ciphertexts.
    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        let writer = Writer::onto(out).raw(self.ephemeral.bytes()).raw(&self.proof);
        self.ciphertexts.iter().fold(writer, |writer, ciphertext| writer.raw(ciphertext)).finish();
    }

    /// Reads `count` ciphertexts of `len` bytes each, and checks the proof.
    pub(crate) fn read(place: Place<'_>, reader: &mut Reader<'_>, count: usize, len: usize) -> Result<Self, Malformed> {
        let ephemeral = Encoded::decode(reader.take(32)?).map_err(|_| Malformed("not an ephemeral key"))?;
        let proof = reader.array::<SIGNATURE_LEN>()?;
        let ciphertexts = (0..count).map(|_| reader.take(len).map(<[u8]>::to_vec)).collect::<Result<_, _>>()?;
        if !schnorr::vartime_verify(&ephemeral, &place.transcript("theta/ceremony/ephemeral/v1"), &proof) {
            return Err(Malformed("the ephemeral key is not the dealer's own"));
        }
        Ok(Self { ephemeral, proof, ciphertexts })
    }

    /// What is for this party, which stands at `position` among the recipients.
    pub(crate) fn open(&self, place: Place<'_>, own: &Participant, position: usize) -> Option<Secret<Vec<u8>>> {
        let shared = agreed(&self.ephemeral, own.decryption());
        self.unmask(place, own.party(), position, shared.expose())
    }

    fn unmask(
        &self,
        place: Place<'_>,
        recipient: PartyId,
        position: usize,
        shared: &[u8; Ristretto255::ENCODED_LEN],
    ) -> Option<Secret<Vec<u8>>> {
        let ciphertext = self.ciphertexts.get(position)?;
        Some(Secret::new(masked(place, recipient, &self.ephemeral, shared, ciphertext)))
    }

    /// Discloses what lets everybody decrypt this party's ciphertext: ek * r, with a proof that it is right.
    pub(crate) fn disclose(&self, place: Place<'_>, own: &Participant, rng: &mut impl CryptoRng) -> Vec<u8> {
        let shared = Encoded::new(*self.ephemeral.element() * *own.decryption().expose());
        let context = disclosure_context(place, own.party());
        let bases = Generator::new().with(self.ephemeral);
        let image = own.encryption_key();
        let proof = dleq::prove(&context, own.decryption(), &bases, image, &shared, rng);
        let mut bytes = shared.bytes().to_vec();
        proof.encode_into(&mut bytes);
        bytes
    }

    /// Decrypts by what `recipient` disclosed; `None` if the disclosure is false.
    pub(crate) fn open_disclosed(
        &self,
        place: Place<'_>,
        recipient: Recipient<'_>,
        position: usize,
        disclosed: &[u8],
    ) -> Option<Secret<Vec<u8>>> {
        let (shared, proof) = disclosed.split_at_checked(Ristretto255::ENCODED_LEN)?;
        let shared = Encoded::decode(shared).ok()?;
        let proof = DleqProof::decode(proof).ok()?;
        let context = disclosure_context(place, recipient.party);
        let claim = DleqClaim { image_g: *recipient.key, image: shared, proof: &proof, context: &context };
        let bases = Generator::new().with(self.ephemeral);
        if dleq::vartime_verify(&bases, &claim) {
            self.unmask(place, recipient.party, position, &Ristretto255::encode(shared.element()))
        } else {
            None
        }
    }
}

/// What two parties have in common, of which each knows the logarithm of one element: the encoding of their product.
fn agreed(
    element: &Encoded<Ristretto255>,
    logarithm: &Secret<RistrettoScalar>,
) -> Secret<[u8; Ristretto255::ENCODED_LEN]> {
    let product = Secret::new(*element.element() * *logarithm.expose());
    Secret::new(Ristretto255::encode(product.expose()))
}

fn disclosure_context(place: Place<'_>, recipient: PartyId) -> Transcript {
    place.transcript("theta/ceremony/disclosure/v1").with("recipient", &recipient.get().to_be_bytes())
}

/// The bytes XORed with the keystream; the same operation encrypts and decrypts.
fn masked(
    place: Place<'_>,
    recipient: PartyId,
    ephemeral: &Encoded<Ristretto255>,
    shared: &[u8; Ristretto255::ENCODED_LEN],
    bytes: &[u8],
) -> Vec<u8> {
    let seed = place
        .transcript("theta/ceremony/keystream/v1")
        .with("recipient", &recipient.get().to_be_bytes())
        .with("r", ephemeral.bytes())
        .with("shared", shared);
    let mut out = Vec::with_capacity(bytes.len());
    for (block, number) in bytes.chunks(64).zip(0_u32..) {
        let stream = Secret::new(seed.clone().with("block", &number.to_be_bytes()).finish());
        out.extend(block.iter().zip(stream.expose()).map(|(byte, mask)| byte ^ mask));
    }
    out
}
