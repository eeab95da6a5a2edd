//! Keys of stored primes, and other fixtures.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use theta_groups::Secret;
use theta_groups::modular::Integer;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, deal_rsa_primes};
use theta_schemes::signatures::sh00::{
    Pkcs1Sha256, RsaDealt, RsaPrimes, RsaPublicKey, RsaRequest, RsaScheme, RsaShare, Sh00, deal_primes,
};
use theta_schemes::{StatementBytes, Suite, ThresholdScheme};
use theta_sharing::{ShareIndex, Threshold};

pub(crate) type Rsa = Sh00<Pkcs1Sha256>;

pub(crate) const SUITES: [Suite; 4] =
    [Suite::Sh00Pkcs1Sha256, Suite::Sh00Pkcs1Sha512, Suite::Sh00PssSha256, Suite::Cks05Sh00];

pub(crate) fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

pub(crate) fn index(i: u16) -> ShareIndex {
    ShareIndex::try_from(i).unwrap()
}

pub(crate) fn threshold(k: u16, n: u16) -> Threshold {
    Threshold::new(k, n).unwrap()
}

/// Where the known answers and primes are.
pub(crate) fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/sh00")
}

/// The stored primes of a modulus of 1024, 2048, 3072 or 4096 bits.
pub(crate) fn primes(bits: u32) -> &'static RsaPrimes {
    static STORED: [OnceLock<RsaPrimes>; 4] = [const { OnceLock::new() }; 4];
    STORED[bits as usize / 1024 - 1].get_or_init(|| {
        let text = fs::read_to_string(vectors().join("safe_primes.json")).unwrap();
        let stored: serde_json::Value = serde_json::from_str(&text).unwrap();
        let prime = |name: &str| {
            let digits = stored["primes"][bits.to_string()][name].as_str().unwrap();
            Secret::new(Integer::from_be_bytes(&hex::decode(digits).unwrap()))
        };
        RsaPrimes::new(prime("p"), prime("q")).unwrap()
    })
}

pub(crate) fn key(suite: Suite, bits: u32, k: u16, n: u16, seed: u64) -> (AnyPublicKey, Vec<AnyKeyShare>) {
    deal_rsa_primes(suite, primes(bits), threshold(k, n), &mut rng(seed)).unwrap()
}

/// A key of 1024 bits, with its types.
pub(crate) fn short_key<S: RsaScheme>(k: u16, n: u16, seed: u64) -> RsaDealt {
    deal_primes::<S>(primes(1024), threshold(k, n), &mut rng(seed))
}

/// A statement of a suite.
pub(crate) fn statement(suite: Suite, message: &[u8]) -> StatementBytes {
    match suite {
        Suite::Cks05Sh00 => StatementBytes::FlipCoin(message.to_vec().into()),
        _ => StatementBytes::Sign(message.to_vec().into()),
    }
}

pub(crate) fn request<S: RsaScheme + ThresholdScheme<Request = RsaRequest>>(
    public: &RsaPublicKey,
    message: &[u8],
) -> RsaRequest {
    S::parse_request(public, &statement(S::SUITE, message).as_statement()).unwrap()
}

/// All parties' proven shares.
pub(crate) fn shares(
    public: &AnyPublicKey,
    keys: &[AnyKeyShare],
    statement: &StatementBytes,
) -> Vec<(ShareIndex, Vec<u8>)> {
    let mut rng = rng(99);
    keys.iter().map(|key| (key.index(), public.create_share(key, statement, &mut rng).unwrap())).collect()
}

pub(crate) fn borrow(shares: &[(ShareIndex, Vec<u8>)]) -> Vec<(ShareIndex, &[u8])> {
    shares.iter().map(|(index, share)| (*index, share.as_slice())).collect()
}

/// All parties' shares of a message, with proofs or without.
pub(crate) fn typed_shares(dealt: &RsaDealt, message: &[u8], proven: bool) -> Vec<RsaShare> {
    let request = request::<Rsa>(&dealt.public, message);
    let mut rng = rng(98);
    let create = if proven { Rsa::create_share } else { Rsa::create_bare_share };
    dealt.shares.iter().map(|key| create(&dealt.public, key, &request, &mut rng)).collect()
}

/// Every set of k of the numbers 0 to n - 1.
pub(crate) fn subsets(k: u32, n: u32) -> impl Iterator<Item = Vec<usize>> {
    (0..1_usize << n)
        .filter(move |mask| mask.count_ones() == k)
        .map(move |mask| (0..n as usize).filter(|i| mask >> i & 1 == 1).collect())
}
