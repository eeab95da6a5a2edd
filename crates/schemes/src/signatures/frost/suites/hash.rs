//! The hash functions of RFC 9591, section 6, which give digests and scalars.

use core::fmt::Debug;

use sha2::{Digest, Sha256, Sha512};
use shake::Shake256;
use shake::digest::{ExtendableOutput, Update, XofReader};
use theta_groups::Scalar;
use zeroize::Zeroizing;

/// A suite's hash function. Inputs are parts that are concatenated.
pub trait SuiteHash: Copy + Debug + Send + Sync + 'static {
    /// The output of H4 and H5.
    type Digest: AsRef<[u8]>;

    /// `hash(context || label || message)`: H4 and H5.
    fn digest(context: &[u8], label: &[u8], message: &[&[u8]]) -> Self::Digest;

    /// The scalar of context, label and `prefix || rest`: H1, H2 and H3. For many messages with one prefix, the prefix is hashed
    /// once.
    fn to_scalar<S: Scalar>(context: &[u8], label: &[u8], prefix: &[&[u8]]) -> impl Fn(&[u8]) -> S;
}

/// SHA-512, its 64 bytes read as a little-endian integer: sections 6.1 and 6.2.
#[derive(Clone, Copy, Debug)]
pub struct Sha512Hash;

impl SuiteHash for Sha512Hash {
    type Digest = [u8; 64];

    fn digest(context: &[u8], label: &[u8], message: &[&[u8]]) -> [u8; 64] {
        absorb(Sha512::new(), context, label, message).finalize().into()
    }

    fn to_scalar<S: Scalar>(context: &[u8], label: &[u8], prefix: &[&[u8]]) -> impl Fn(&[u8]) -> S {
        let prefixed = absorb(Sha512::new(), context, label, prefix);
        move |rest| reduce(&Zeroizing::<[u8; 64]>::new(prefixed.clone().chain_update(rest).finalize().into()))
    }
}

/// SHAKE256, its 114 bytes read as a little-endian integer: section 6.3.
#[derive(Clone, Copy, Debug)]
pub struct Shake256Hash;

impl Shake256Hash {
    fn absorb(context: &[u8], label: &[u8], parts: &[&[u8]]) -> Shake256 {
        let mut hash = Shake256::default();
        hash.update(context);
        hash.update(label);
        parts.iter().for_each(|part| hash.update(part));
        hash
    }

    fn squeeze(hash: Shake256) -> [u8; 114] {
        let mut output = [0; 114];
        hash.finalize_xof().read(&mut output);
        output
    }
}

impl SuiteHash for Shake256Hash {
    type Digest = [u8; 114];

    fn digest(context: &[u8], label: &[u8], message: &[&[u8]]) -> [u8; 114] {
        Self::squeeze(Self::absorb(context, label, message))
    }

    fn to_scalar<S: Scalar>(context: &[u8], label: &[u8], prefix: &[&[u8]]) -> impl Fn(&[u8]) -> S {
        let prefixed = Self::absorb(context, label, prefix);
        move |rest| reduce(&Zeroizing::new(Self::squeeze(prefixed.clone().chain(rest))))
    }
}

/// SHA-256 for digests; scalars by `hash_to_field` of RFC 9380 (section 5.2, expand_message_xmd, L = 48) with the domain
/// `context || label`: sections 6.4 and 6.5.
#[derive(Clone, Copy, Debug)]
pub struct Sha256Hash;

impl SuiteHash for Sha256Hash {
    type Digest = [u8; 32];

    fn digest(context: &[u8], label: &[u8], message: &[&[u8]]) -> [u8; 32] {
        absorb(Sha256::new(), context, label, message).finalize().into()
    }

    fn to_scalar<S: Scalar>(context: &[u8], label: &[u8], prefix: &[&[u8]]) -> impl Fn(&[u8]) -> S {
        // DST_prime; domains here have some 30 bytes.
        let mut domain = [context, label].concat();
        domain.push(u8::try_from(domain.len()).unwrap_or(u8::MAX));
        let prefixed = absorb(Sha256::new(), &[0; 64], &[], prefix);
        move |rest| {
            // Whoever has b0 has all that follows from it.
            let b0 = wiped(prefixed.clone().chain_update(rest).chain_update([0, 48, 0]).chain_update(&domain));
            let block = |input: &[u8; 32], number: u8| {
                wiped(Sha256::new().chain_update(input).chain_update([number]).chain_update(&domain))
            };
            let b1 = block(&b0, 1);
            let mut xor = b0;
            xor.iter_mut().zip(b1.iter()).for_each(|(byte, other)| *byte ^= other);
            let b2 = block(&xor, 2);
            let mut uniform = Zeroizing::new([0; 48]);
            uniform.iter_mut().zip(b1.iter().chain(b2.iter())).for_each(|(to, from)| *to = *from);
            reduce(&uniform)
        }
    }
}

/// Starts a hash.
fn absorb<H: Digest>(mut hash: H, context: &[u8], label: &[u8], parts: &[&[u8]]) -> H {
    Digest::update(&mut hash, context);
    Digest::update(&mut hash, label);
    parts.iter().for_each(|part| Digest::update(&mut hash, part));
    hash
}

/// The end of a hash whose output may be a nonce.
fn wiped(hash: Sha256) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(hash.finalize().into())
}

/// Reduces uniform bytes, which may be a nonce and are wiped by their owner.
fn reduce<S: Scalar, const N: usize>(uniform: &Zeroizing<[u8; N]>) -> S {
    S::from_uniform_bytes(uniform.as_slice())
}
