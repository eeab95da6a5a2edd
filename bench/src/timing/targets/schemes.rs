//! The schemes: nonces and responses of FROST, powers with a share of an RSA key, payloads that are opened.

use std::fmt::Display;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use theta::exit::Failure;
use theta_groups::modular::{Integer, Modulus, Residue};
use theta_payload::{Aead, Encrypt as _, PayloadKey, TAG_LEN, open_bytes, split_ciphertext};
use theta_schemes::{
    Statement, Suite,
    keys::{Dealt, KeyShare, deal, deal_any},
    signatures::frost::{self, Ed25519Sha512, Frost, FrostSuite, P256Sha256, SigningNonces, SigningPackage},
};
use theta_sharing::Threshold;

use super::{Drawn, Target, seeded};
use crate::timing::dudect::Class;

/// Bytes of an RSA modulus.
const RSA_LEN: usize = 256;

pub(super) fn all() -> Vec<Target> {
    let mut all = Vec::from(frost_steps::<Ed25519Sha512>("ed25519"));
    all.extend(frost_steps::<P256Sha256>("p256"));
    all.push(Target::new("rsa-power", "exponent 3, or random", |trial| {
        let modulus = odd(trial.rng())?;
        trial.steps(
            |class, rng| {
                let mut exponent = [0; RSA_LEN];
                Drawn::new(class, rng).fill_bytes(&mut exponent);
                // A power of zero would be 1, which is shorter than others.
                let [.., lowest] = &mut exponent;
                *lowest |= 3;
                Ok((residue(&modulus, rng), exponent))
            },
            |(base, exponent)| modulus.pow(&base, &exponent),
        )
    }));
    for aead in [Aead::ChaCha20Poly1305, Aead::Aes256Gcm] {
        all.push(Target::new(format!("payload-open-{aead}"), "key and plaintext the same, or random", move |trial| {
            trial.fallible_steps(
                |class, rng| sealed(aead, &mut seeded(class, rng)),
                |(key, ciphertext)| open_bytes(&key, &ciphertext),
            )
        }));
        all.push(Target::new(
            format!("payload-forged-{aead}"),
            "tag wrong in its first byte, or in its last",
            move |trial| {
                trial.steps(
                    |class, rng| {
                        let (key, mut ciphertext) = sealed(aead, rng)?;
                        let from_the_end = if class == Class::Fixed { TAG_LEN - 1 } else { 0 };
                        if let Some(byte) = ciphertext.iter_mut().rev().nth(from_the_end) {
                            *byte ^= 1;
                        }
                        Ok((key, ciphertext))
                    },
                    |(key, ciphertext)| open_bytes(&key, &ciphertext).is_err(),
                )
            },
        ));
    }
    all
}

/// A signer before its answer.
type Signer<C> = (SigningPackage<C>, SigningNonces<C>, KeyShare<<C as FrostSuite>::Group>);

fn frost_steps<C: FrostSuite>(curve: &str) -> [Target; 2] {
    [
        Target::new(format!("frost-commit-{curve}"), "key share the same, or random", |trial| {
            trial.steps(
                |class, rng| {
                    let Dealt { shares, .. } = deal::<Frost<C>>(two_of_three()?, &mut seeded(class, rng));
                    Ok((first(shares)?, ChaCha20Rng::from_rng(rng)))
                },
                |(key, mut rng)| frost::commit::<C>(&key, &mut rng),
            )
        }),
        Target::new(format!("frost-sign-{curve}"), "nonces and key share the same, or random", |trial| {
            trial.fallible_steps(signer::<C>, |(package, nonces, key)| frost::sign(&package, nonces, &key))
        }),
    ]
}

/// A signer whose nonces and key are of the class, with a new message and another signer's new commitments.
fn signer<C: FrostSuite>(class: Class, rng: &mut ChaCha20Rng) -> Result<Signer<C>, Failure> {
    let mut drawn = seeded(class, rng);
    let Dealt { public, shares } = deal::<Frost<C>>(two_of_three()?, &mut drawn);
    let other = shares.last().ok_or_else(|| Failure::internal("a key without shares"))?;
    let (_, theirs) = frost::commit::<C>(other, rng);
    let key = first(shares)?;
    let (nonces, ours) = frost::commit::<C>(&key, &mut drawn);
    let mut message = [0; 32];
    rng.fill_bytes(&mut message);
    let package = SigningPackage::<C>::new(&public, vec![ours, theirs], &message).map_err(Failure::internal)?;
    Ok((package, nonces, key))
}

fn two_of_three() -> Result<Threshold, Failure> {
    Threshold::new(2, 3).map_err(Failure::internal)
}

fn first<T>(shares: Vec<T>) -> Result<T, Failure> {
    shares.into_iter().next().ok_or_else(|| Failure::internal("a key without shares"))
}

/// A random odd modulus: a power takes as long whatever its factors are.
fn odd(rng: &mut ChaCha20Rng) -> Result<Modulus, Failure> {
    let mut bytes = [0; RSA_LEN];
    rng.fill_bytes(&mut bytes);
    let [highest, .., lowest] = &mut bytes;
    *highest |= 0x80;
    *lowest |= 1;
    Modulus::new(Integer::from_be_bytes(&bytes)).ok_or_else(|| Failure::internal("an odd number is no modulus"))
}

/// A random residue.
fn residue(modulus: &Modulus, rng: &mut ChaCha20Rng) -> Residue {
    let mut bytes = [0; RSA_LEN];
    rng.fill_bytes(&mut bytes);
    modulus.reduce(&Integer::from_be_bytes(&bytes))
}

/// A short payload, sealed under a new key, and the key.
fn sealed(aead: Aead, rng: &mut ChaCha20Rng) -> Result<(PayloadKey, Vec<u8>), Failure> {
    fn internal<T>(result: Result<T, impl Display>) -> Result<T, Failure> {
        result.map_err(Failure::internal)
    }
    let threshold = internal(Threshold::new(1, 1))?;
    let (public, shares) = deal_any(Suite::Sg02Ristretto255, threshold, rng);
    let share = shares.first().ok_or_else(|| Failure::internal("a key without shares"))?;
    let mut plaintext = [0; 64];
    rng.fill_bytes(&mut plaintext);
    let ciphertext = internal(public.encrypt(&plaintext, b"", aead, rng))?;
    let (header, _) = internal(split_ciphertext(&ciphertext))?;
    let statement = Statement::Decapsulate(header);
    let answer = internal(public.create_share(share, statement, rng))?;
    let combined = internal(public.combine(statement, &[(share.index(), &answer)], rng))?;
    let key = internal(PayloadKey::from_bytes(combined.result.expose()))?;
    Ok((key, ciphertext))
}
