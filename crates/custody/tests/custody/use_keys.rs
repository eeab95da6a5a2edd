//! Uses the keys of ceremonies with the real schemes.

use theta_groups::{Group as _, Scalar as _, Secp256k1};
use theta_payload::{Aead, Encrypt as _, PayloadKey, open_bytes, split_ciphertext};
use theta_schemes::Statement;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, SchemeError};
use theta_schemes::signatures::ecdsa::{Ecdsa, Secp256k1Sha256};
use theta_sharing::coefficients_at_zero;

use crate::net::{Net, seeded};

/// Combines the shares of these nodes, each under the key as it has it.
pub(crate) fn combine(net: &Net, nodes: &[u16], key: &str, statement: Statement<'_>) -> Result<Vec<u8>, SchemeError> {
    let shares: Vec<_> = nodes.iter().map(|node| net.entry(*node, key).expose_share().cloned().unwrap()).collect();
    let shares: Vec<&AnyKeyShare> = shares.iter().map(AsRef::as_ref).collect();
    combine_shares(&net.entry(nodes[0], key).public, &shares, statement)
}

pub(crate) fn combine_shares(
    public: &AnyPublicKey,
    shares: &[&AnyKeyShare],
    statement: Statement<'_>,
) -> Result<Vec<u8>, SchemeError> {
    let mut rng = seeded(1);
    let answers: Vec<_> =
        shares.iter().map(|share| (share.index(), public.create_share(share, statement, &mut rng).unwrap())).collect();
    let answers: Vec<_> = answers.iter().map(|(index, bytes)| (*index, &bytes[..])).collect();
    Ok(public.combine(statement, &answers, &mut rng)?.result.expose().clone())
}

/// The nodes sign, and everybody who has the key verifies.
pub(crate) fn check_signature(net: &Net, nodes: &[u16], key: &str, public: &AnyPublicKey) {
    let signature = combine(net, nodes, key, Statement::Sign(b"message")).unwrap();
    public.verify(b"message", &signature, &[]).unwrap();
}

/// The nodes draw a coin.
pub(crate) fn check_coin(net: &Net, nodes: &[u16], key: &str) {
    let drawn = combine(net, nodes, key, Statement::FlipCoin(b"coin")).unwrap();
    assert!(!drawn.is_empty());
}

pub(crate) fn encrypt(public: &AnyPublicKey) -> Vec<u8> {
    public.encrypt(b"the contents", b"label", Aead::default(), &mut seeded(2)).unwrap()
}

/// The nodes open what was encrypted to the key.
pub(crate) fn check_decryption(net: &Net, nodes: &[u16], key: &str, ciphertext: &[u8]) {
    let (header, _) = split_ciphertext(ciphertext).unwrap();
    let opened = combine(net, nodes, key, Statement::Decapsulate(header)).unwrap();
    let opened = PayloadKey::from_bytes(&opened).unwrap();
    assert_eq!(open_bytes(&opened, ciphertext).unwrap().expose(), b"the contents");
}

/// The shares of these nodes, k of them, are of an ECDSA key on secp256k1.
pub(crate) fn check_sharing(net: &Net, nodes: &[u16], key: &str, public: &AnyPublicKey) {
    type Scheme = Ecdsa<Secp256k1Sha256>;
    let shares: Vec<_> = nodes.iter().map(|node| net.entry(*node, key).expose_share().cloned().unwrap()).collect();
    assert_eq!(shares.len(), usize::from(net.entry(nodes[0], key).public.threshold().k()));
    let indices: Vec<_> = shares.iter().map(|share| share.index()).collect();
    let scalars = shares.iter().map(|share| *share.get::<Scheme>().unwrap().secret().expose());
    let coefficients = coefficients_at_zero(&indices).unwrap();
    let secret = scalars
        .zip(coefficients)
        .fold(<Secp256k1 as theta_groups::Group>::Scalar::ZERO, |sum, (share, l)| sum + share * l);
    assert_eq!(Secp256k1::mul_base(&secret), *public.get::<Scheme>().unwrap().public_key());
}
