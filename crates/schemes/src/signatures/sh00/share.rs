//! Shares of RSA signatures.

use core::any::Any;
use std::sync::Arc;

use rand_core::CryptoRng;
use theta_groups::DecodeError;
use theta_groups::modular::Residue;
use theta_sharing::ShareIndex;

use super::interpolation::IntegerCoefficients;
use super::proof::{Claim, Proof, RESPONSE_EXCESS, find_false};
use super::{MODULUS_BITS, RsaKeyShare, RsaPublicKey, RsaRequest, TEST_MODULUS_BITS};
use crate::PendingShare;
use crate::keys::SecretMaterial as _;

/// One party's x_i = x^(2 s_i), bare or with a proof. Whether its numbers are those of one key is told by `check`.
#[derive(Clone, Debug)]
pub struct RsaShare {
    index: ShareIndex,
    value: Vec<u8>,
    proof: Option<Proof>,
}

impl RsaShare {
    /// Whose share this is.
    #[must_use]
    pub const fn index(&self) -> ShareIndex {
        self.index
    }

    /// Whether it carries a proof.
    #[must_use]
    pub const fn is_proven(&self) -> bool {
        self.proof.is_some()
    }

    /// x_i, big-endian.
    pub(super) fn value(&self) -> &[u8] {
        &self.value
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.value.clone();
        if let Some(proof) = &self.proof {
            out.extend_from_slice(&proof.commitment_base);
            out.extend_from_slice(&proof.commitment_message);
            out.extend_from_slice(&proof.response);
        }
        out
    }
}

/// Makes a bare share by one exponentiation with an exponent of N's size, unless it has been made with another.
pub(crate) fn create_bare(public: &RsaPublicKey, key: &RsaKeyShare, request: &RsaRequest) -> RsaShare {
    let modulus = public.modulus();
    let made = request.made().get().filter(|(index, _)| *index == key.index());
    let value = match made {
        Some((_, value)) => modulus.encode(value),
        None => modulus.encode(&modulus.pow(request.square(), key.secret().expose())),
    };
    RsaShare { index: key.index(), value, proof: None }
}

/// The bare share of one party, to be made with that of another request if there is one.
struct Paired {
    public: Arc<RsaPublicKey>,
    key: Arc<RsaKeyShare>,
    request: RsaRequest,
}

/// See [`ThresholdScheme::pending_share`](crate::ThresholdScheme::pending_share).
pub(crate) fn pending(
    public: &Arc<RsaPublicKey>,
    key: &Arc<RsaKeyShare>,
    request: &RsaRequest,
) -> Option<Box<dyn PendingShare>> {
    let paired = || Paired { public: Arc::clone(public), key: Arc::clone(key), request: request.clone() };
    public.modulus().prefers_pairs().then(|| Box::new(paired()) as Box<dyn PendingShare>)
}

impl PendingShare for Paired {
    fn enough(&self) -> usize {
        2
    }

    fn make(&self, shares: &[&dyn PendingShare]) {
        let mut shares: Vec<&Self> =
            shares.iter().filter_map(|share| (*share as &dyn Any).downcast_ref::<Self>()).collect();
        // Two go together whose modulus is the same.
        while let Some(first) = shares.pop() {
            let other = shares.iter().position(|other| other.public.modulus() == first.public.modulus());
            let Some(second) = other.map(|place| shares.swap_remove(place)) else { continue };
            let powers = [first, second].map(|share| (share.request.square(), share.key.secret().expose().as_slice()));
            let made = first.public.modulus().pow_pair(powers);
            for (share, value) in [first, second].into_iter().zip(made) {
                // A value that is there already is the same.
                let _ = share.request.made().set((share.key.index(), value));
            }
        }
    }
}

/// A share that [`false_among`] can check.
pub(crate) fn create_proven(
    public: &RsaPublicKey,
    key: &RsaKeyShare,
    request: &RsaRequest,
    rng: &mut dyn CryptoRng,
) -> RsaShare {
    let bare = create_bare(public, key, request);
    let proof = Proof::create(public, key, request, bare.index, &bare.value, rng);
    RsaShare { proof: Some(proof), ..bare }
}

/// Reads a share. Its length tells whether there is a proof: no bare share is as long as a proven one of another size of modulus.
/// Refuses values that are invalid for every modulus: x_i or a commitment that is zero or has all bits set.
pub(crate) fn decode(index: ShareIndex, bytes: &[u8]) -> Result<RsaShare, DecodeError> {
    let mut sizes = MODULUS_BITS.iter().chain([&TEST_MODULUS_BITS]).filter_map(|bits| usize::try_from(bits / 8).ok());
    let len = sizes
        .find(|len| bytes.len() == *len || bytes.len() == 4 * len + RESPONSE_EXCESS)
        .ok_or(DecodeError::Length { expected: 256, got: bytes.len() })?;
    let number = |part: &[u8]| {
        let possible = part.iter().any(|byte| *byte != 0) && part.iter().any(|byte| *byte != 0xff);
        if possible { Ok(part.to_vec()) } else { Err(DecodeError::NotCanonical) }
    };
    let (value, rest) = bytes.split_at_checked(len).ok_or(DecodeError::NotCanonical)?;
    let value = number(value)?;
    if rest.is_empty() {
        return Ok(RsaShare { index, value, proof: None });
    }
    let (base, rest) = rest.split_at_checked(len).ok_or(DecodeError::NotCanonical)?;
    let (message, response) = rest.split_at_checked(len).ok_or(DecodeError::NotCanonical)?;
    let proof =
        Proof { commitment_base: number(base)?, commitment_message: number(message)?, response: response.to_vec() };
    Ok(RsaShare { index, value, proof: Some(proof) })
}

/// The parties whose shares are false or bare.
pub(crate) fn false_among(
    public: &RsaPublicKey,
    request: &RsaRequest,
    shares: &[RsaShare],
    rng: &mut dyn CryptoRng,
) -> Vec<ShareIndex> {
    let mut culprits = Vec::new();
    let mut claims = Vec::with_capacity(shares.len());
    for share in shares {
        let claim =
            share.proof.as_ref().and_then(|proof| Claim::new(public, request, share.index, &share.value, proof));
        match claim {
            Some(claim) => claims.push(claim),
            None => culprits.push(share.index),
        }
    }
    find_false(public, request, &claims, rng, &mut culprits);
    culprits
}

/// Refuses a share of a modulus of another size, and numbers of N or more, which no honest party sends.
pub(crate) fn check(public: &RsaPublicKey, share: &RsaShare) -> Result<(), DecodeError> {
    let modulus = public.modulus();
    modulus.decode(&share.value)?;
    if let Some(proof) = &share.proof {
        modulus.decode(&proof.commitment_base)?;
        modulus.decode(&proof.commitment_message)?;
    }
    Ok(())
}

/// The parties of `others` whose shares, up to a square root of 1, are not what the first k of `verified` determine. An honest one's is: all key
/// shares are values of one polynomial of degree k - 1 modulo m, and m is the order of the squares.
pub(crate) fn vartime_off_polynomial(
    public: &RsaPublicKey,
    verified: &[RsaShare],
    others: &[RsaShare],
) -> Vec<ShareIndex> {
    let known = verified.get(..usize::from(public.threshold().k())).unwrap_or_default();
    let known: Vec<(ShareIndex, Residue)> =
        known.iter().filter_map(|share| Some((share.index, public.modulus().decode(&share.value).ok()?))).collect();
    if known.len() < usize::from(public.threshold().k()) {
        return Vec::new();
    }
    others.iter().filter(|other| !vartime_fits(public, &known, other)).map(RsaShare::index).collect()
}

/// Whether `other` is on the polynomial through k `known` shares.
///
/// The differences of order k of such a polynomial are zero: with w_i = 1 / prod over m != i of (i - m), the sum of all w_i f(i) over k parties and one
/// other is zero. The coefficients at zero are prod over m of m, times w_i / i. So the product of all x_i^(2 i D lambda_i) is 1, D being the common
/// denominator; negative powers stand on the other side. The 2 removes square roots of 1, and D has no factor in common with m.
fn vartime_fits(public: &RsaPublicKey, known: &[(ShareIndex, Residue)], other: &RsaShare) -> bool {
    let modulus = public.modulus();
    let Ok(value) = modulus.decode(&other.value) else { return false };
    let all: Vec<(ShareIndex, &Residue)> =
        known.iter().map(|(index, value)| (*index, value)).chain([(other.index, &value)]).collect();
    let indices: Vec<ShareIndex> = all.iter().map(|(index, _)| *index).collect();
    let mut coefficients = IntegerCoefficients::at_zero(&indices);
    for (exponent, index) in coefficients.numerators.iter_mut().zip(&indices) {
        exponent.mul_u64(2 * u64::from(index.get()));
    }
    let (mut above, mut below) = (Vec::new(), Vec::new());
    for (((_, value), exponent), negative) in all.iter().zip(&coefficients.numerators).zip(&coefficients.negative) {
        if *negative { below.push((*value, exponent)) } else { above.push((*value, exponent)) }
    }
    modulus.vartime_product(&above) == modulus.vartime_product(&below)
}

#[cfg(test)]
mod tests {
    use super::super::proof::tests::dealt;
    use super::*;
    use crate::signatures::sh00::{Pkcs1Sha256, RsaDealt};

    /// Three requests that wait, and one of another key with the same modulus: two and two are made together, and each is its own.
    #[test]
    fn shares_that_wait_are_made_in_pairs() {
        let RsaDealt { public, shares, .. } = dealt();
        let public = Arc::new(public);
        let keys: Vec<Arc<RsaKeyShare>> = shares.into_iter().map(Arc::new).collect();
        for count in 1..=4 {
            let asked: Vec<_> = [
                (&keys[0], request_of(&public, b"a")),
                (&keys[0], request_of(&public, b"b")),
                (&keys[1], request_of(&public, b"c")),
            ]
            .into_iter()
            .chain([(&keys[0], request_of(&public, b"d"))])
            .take(count)
            .collect();
            let pending: Vec<_> = asked.iter().map(|(key, request)| pending(&public, key, request).unwrap()).collect();
            assert!(pending.iter().all(|share| share.enough() == 2));
            pending[0].make(&pending.iter().map(AsRef::as_ref).collect::<Vec<_>>());
            let made = asked.iter().filter(|(_, request)| request.made().get().is_some()).count();
            assert_eq!(made, count / 2 * 2, "one is left over where they are odd");
            for ((key, request), message) in asked.iter().zip([b"a", b"b", b"c", b"d"]) {
                let alone = create_bare(&public, key, &request_of(&public, message));
                assert_eq!(create_bare(&public, key, request).value(), alone.value());
            }
        }
    }

    /// A request may be answered by more parties than one where it was parsed once for all of them, as tests do.
    #[test]
    fn what_was_made_is_of_one_party() {
        let RsaDealt { public, shares, .. } = dealt();
        let public = Arc::new(public);
        let keys: Vec<Arc<RsaKeyShare>> = shares.into_iter().map(Arc::new).collect();
        let (first, second) = (request_of(&public, b"a"), request_of(&public, b"b"));
        let both = [&first, &second].map(|request| pending(&public, &keys[0], request).unwrap());
        both[0].make(&both.iter().map(AsRef::as_ref).collect::<Vec<_>>());
        let (own, other) = (create_bare(&public, &keys[0], &first), create_bare(&public, &keys[1], &first));
        assert_eq!(own.value(), create_bare(&public, &keys[0], &request_of(&public, b"a")).value());
        assert_eq!(other.value(), create_bare(&public, &keys[1], &request_of(&public, b"a")).value());
        assert_ne!(own.value(), other.value());
    }

    fn request_of(public: &RsaPublicKey, message: &[u8]) -> RsaRequest {
        RsaRequest::new::<Pkcs1Sha256>(public, message).unwrap()
    }
}
