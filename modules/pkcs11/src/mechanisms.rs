//! Which mechanisms are served, by which keys, and what the nodes are asked for each.
//!
//! A mechanism that hashes lets the nodes see the whole message, so that their policies decide about it (`sign`); one that does not lets
//! them see a digest (`sign-digest`). Keys of RSA have one encoding and one hash function, which are part of their suite: other
//! mechanisms of RSA are refused for them, since the nodes could not make such a signature.

use bytes::Bytes;
use cryptoki_sys::{
    CK_MECHANISM_INFO, CK_MECHANISM_TYPE, CK_ULONG, CKF_EC_F_P, CKF_EC_OID, CKF_EC_UNCOMPRESS, CKF_GENERATE_KEY_PAIR,
    CKF_HW, CKF_SIGN, CKF_VERIFY, CKG_MGF1_SHA256, CKM_EC_EDWARDS_KEY_PAIR_GEN, CKM_EC_KEY_PAIR_GEN, CKM_ECDSA,
    CKM_ECDSA_SHA256, CKM_EDDSA, CKM_RSA_PKCS, CKM_RSA_PKCS_KEY_PAIR_GEN, CKM_RSA_PKCS_PSS, CKM_SHA256,
    CKM_SHA256_RSA_PKCS, CKM_SHA256_RSA_PKCS_PSS, CKM_SHA512_RSA_PKCS, CKR_DATA_INVALID, CKR_DATA_LEN_RANGE,
    CKR_KEY_FUNCTION_NOT_PERMITTED, CKR_KEY_TYPE_INCONSISTENT, CKR_MECHANISM_INVALID, CKR_MECHANISM_PARAM_INVALID,
};
use theta_schemes::{MessageDigest, Suite};

use crate::refusal::{Outcome, Refusal};

/// All mechanisms that are served.
pub(crate) const ALL: [CK_MECHANISM_TYPE; 8] = [
    CKM_EDDSA,
    CKM_ECDSA,
    CKM_ECDSA_SHA256,
    CKM_RSA_PKCS,
    CKM_SHA256_RSA_PKCS,
    CKM_SHA512_RSA_PKCS,
    CKM_RSA_PKCS_PSS,
    CKM_SHA256_RSA_PKCS_PSS,
];

/// The mechanisms by which hosts make keys, of tokens that have a pool of them.
pub(crate) const GENERATION: [CK_MECHANISM_TYPE; 3] =
    [CKM_EC_KEY_PAIR_GEN, CKM_EC_EDWARDS_KEY_PAIR_GEN, CKM_RSA_PKCS_KEY_PAIR_GEN];

/// The longest digest that a host may send for ECDSA, in bytes: that of SHA-512.
const MOST_DIGEST: usize = 64;
/// The length of what ECDSA on curves of 256 bits signs, and of the digest and the salt of PSS, in bytes.
const LEN_256: usize = 32;

/// A mechanism as a host names it, with a copy of its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mechanism {
    pub(crate) kind: CK_MECHANISM_TYPE,
    pub(crate) parameters: Vec<u8>,
}

/// What the nodes are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// A signature of this message.
    Message(Bytes),
    /// A signature of the message with this digest.
    Digest(Bytes),
}

impl Request {
    /// The digest, if it is one of SHA-256.
    pub(crate) fn digest(&self) -> Option<[u8; LEN_256]> {
        match self {
            Self::Message(_) => None,
            Self::Digest(digest) => digest.as_ref().try_into().ok(),
        }
    }
}

/// How the data of the host become a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// They are the message.
    Message,
    /// They are a digest for ECDSA, of which 256 bits count.
    EcdsaDigest,
    /// They are a DigestInfo of this hash function (RFC 8017, section 9.2).
    DigestInfo(MessageDigest),
    /// They are a digest for PSS.
    PssDigest,
}

/// The mechanisms that a key of this suite serves; none for suites that PKCS#11 has no mechanism for.
pub(crate) const fn of(suite: Suite) -> &'static [CK_MECHANISM_TYPE] {
    match suite {
        Suite::FrostEd25519 => &[CKM_EDDSA],
        Suite::EcdsaP256 | Suite::EcdsaSecp256k1 => &[CKM_ECDSA, CKM_ECDSA_SHA256],
        Suite::Sh00Pkcs1Sha256 => &[CKM_RSA_PKCS, CKM_SHA256_RSA_PKCS],
        Suite::Sh00Pkcs1Sha512 => &[CKM_RSA_PKCS, CKM_SHA512_RSA_PKCS],
        Suite::Sh00PssSha256 => &[CKM_RSA_PKCS_PSS, CKM_SHA256_RSA_PKCS_PSS],
        _ => &[],
    }
}

/// What `C_GetMechanismInfo` says. To hosts the nodes are hardware: no signature is made in this library.
pub(crate) fn info(kind: CK_MECHANISM_TYPE) -> Outcome<CK_MECHANISM_INFO> {
    const CURVE: CK_ULONG = CKF_EC_F_P | CKF_EC_OID | CKF_EC_UNCOMPRESS;
    let (least, most, more) = match kind {
        CKM_EC_KEY_PAIR_GEN => (256, 256, CURVE),
        CKM_EC_EDWARDS_KEY_PAIR_GEN => (255, 256, CURVE),
        CKM_RSA_PKCS_KEY_PAIR_GEN => (2048, 4096, 0),
        // Ed25519's keys have 255 bits; many hosts count 256.
        CKM_EDDSA => (255, 256, CURVE),
        CKM_ECDSA | CKM_ECDSA_SHA256 => (256, 256, CURVE),
        _ if ALL.contains(&kind) => (2048, 4096, 0),
        _ => return Err(Refusal(CKR_MECHANISM_INVALID)),
    };
    let use_of_it = if GENERATION.contains(&kind) { CKF_GENERATE_KEY_PAIR } else { CKF_SIGN | CKF_VERIFY };
    Ok(CK_MECHANISM_INFO { ulMinKeySize: least, ulMaxKeySize: most, flags: CKF_HW | use_of_it | more })
}

/// What a key of this suite does for a mechanism.
pub(crate) fn plan(mechanism: &Mechanism, suite: Suite) -> Outcome<Plan> {
    if !ALL.contains(&mechanism.kind) {
        return Err(Refusal(CKR_MECHANISM_INVALID));
    }
    if !of(suite).contains(&mechanism.kind) {
        // The right kind of key with another encoding or hash function than it was made for, or another kind of key.
        let both_rsa = |kinds: &[CK_MECHANISM_TYPE]| kinds.iter().any(|kind| is_rsa(*kind));
        let same_kind = is_rsa(mechanism.kind) && both_rsa(of(suite));
        return Err(Refusal(if same_kind { CKR_KEY_FUNCTION_NOT_PERMITTED } else { CKR_KEY_TYPE_INCONSISTENT }));
    }
    let plan = match (mechanism.kind, suite) {
        (CKM_ECDSA, _) => Plan::EcdsaDigest,
        (CKM_RSA_PKCS, Suite::Sh00Pkcs1Sha512) => Plan::DigestInfo(MessageDigest::Sha512),
        (CKM_RSA_PKCS, _) => Plan::DigestInfo(MessageDigest::Sha256),
        (CKM_RSA_PKCS_PSS, _) => Plan::PssDigest,
        _ => Plan::Message,
    };
    check_parameters(mechanism)?;
    Ok(plan)
}

const fn is_rsa(kind: CK_MECHANISM_TYPE) -> bool {
    matches!(
        kind,
        CKM_RSA_PKCS | CKM_SHA256_RSA_PKCS | CKM_SHA512_RSA_PKCS | CKM_RSA_PKCS_PSS | CKM_SHA256_RSA_PKCS_PSS
    )
}

fn check_parameters(mechanism: &Mechanism) -> Outcome<()> {
    let good = match mechanism.kind {
        CKM_RSA_PKCS_PSS | CKM_SHA256_RSA_PKCS_PSS => is_pss(&mechanism.parameters),
        CKM_EDDSA => mechanism.parameters.is_empty() || is_pure_eddsa(&mechanism.parameters),
        _ => mechanism.parameters.is_empty(),
    };
    if good { Ok(()) } else { Err(Refusal(CKR_MECHANISM_PARAM_INVALID)) }
}

/// The numbers of a structure that has nothing else in it.
fn numbers(bytes: &[u8]) -> Vec<CK_ULONG> {
    let number = |chunk: &[u8]| chunk.try_into().map(CK_ULONG::from_ne_bytes).unwrap_or_default();
    bytes.chunks_exact(size_of::<CK_ULONG>()).map(number).collect()
}

/// Whether these are the parameters of SHA-256 with a salt as long as the digest (`CK_RSA_PKCS_PSS_PARAMS`): the suite's.
fn is_pss(parameters: &[u8]) -> bool {
    let salt = CK_ULONG::try_from(LEN_256).unwrap_or_default();
    parameters.len() == 3 * size_of::<CK_ULONG>() && numbers(parameters) == [CKM_SHA256, CKG_MGF1_SHA256, salt]
}

/// Whether these are the parameters of Ed25519 itself (`CK_EDDSA_PARAMS`): no hash first and no context. The pointer to the context is
/// not looked at.
fn is_pure_eddsa(parameters: &[u8]) -> bool {
    let Some((flag, rest)) = parameters.split_first() else { return false };
    let context = rest.get(size_of::<CK_ULONG>() - 1..).unwrap_or_default();
    parameters.len() == 3 * size_of::<CK_ULONG>() && *flag == 0 && numbers(context).first() == Some(&0)
}

impl Plan {
    /// What the nodes are asked for these data.
    pub(crate) fn request(self, data: &[u8]) -> Outcome<Request> {
        match self {
            Self::Message => Ok(Request::Message(Bytes::copy_from_slice(data))),
            Self::EcdsaDigest => ecdsa_digest(data).map(Request::Digest),
            Self::DigestInfo(digest) => {
                let found = data.strip_prefix(digest_info(digest)).filter(|found| found.len() == digest.output_len());
                found.map(|found| Request::Digest(Bytes::copy_from_slice(found))).ok_or(Refusal(CKR_DATA_INVALID))
            }
            Self::PssDigest if data.len() == LEN_256 => Ok(Request::Digest(Bytes::copy_from_slice(data))),
            Self::PssDigest => Err(Refusal(CKR_DATA_LEN_RANGE)),
        }
    }
}

/// The number that ECDSA signs: the leftmost 256 bits of a digest (FIPS 186-5, section 6.4.1), in 32 bytes.
fn ecdsa_digest(data: &[u8]) -> Outcome<Bytes> {
    if data.is_empty() || data.len() > MOST_DIGEST {
        return Err(Refusal(CKR_DATA_LEN_RANGE));
    }
    let leftmost = data.get(..LEN_256).unwrap_or(data);
    let zeros = vec![0; LEN_256.saturating_sub(leftmost.len())];
    Ok([zeros, leftmost.to_vec()].concat().into())
}

/// What stands before the digest in a DigestInfo (RFC 8017, section 9.2, note 1).
const fn digest_info(digest: MessageDigest) -> &'static [u8] {
    match digest {
        MessageDigest::Sha256 => &[
            0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0, 0x04,
            0x20,
        ],
        MessageDigest::Sha512 => &[
            0x30, 0x51, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x03, 0x05, 0, 0x04,
            0x40,
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(kind: CK_MECHANISM_TYPE) -> Mechanism {
        Mechanism { kind, parameters: Vec::new() }
    }

    fn pss(numbers: [CK_ULONG; 3]) -> Mechanism {
        Mechanism { kind: CKM_RSA_PKCS_PSS, parameters: numbers.into_iter().flat_map(CK_ULONG::to_ne_bytes).collect() }
    }

    #[test]
    fn every_mechanism_has_a_suite_and_is_described() {
        for kind in ALL {
            assert!(Suite::ALL.into_iter().any(|suite| of(suite).contains(&kind)), "{kind:#x}");
            assert_eq!(info(kind).unwrap().flags & (CKF_SIGN | CKF_GENERATE_KEY_PAIR), CKF_SIGN);
        }
        for kind in GENERATION {
            assert_eq!(info(kind).unwrap().flags & (CKF_SIGN | CKF_GENERATE_KEY_PAIR), CKF_GENERATE_KEY_PAIR);
        }
        assert_eq!(info(CKM_SHA256).unwrap_err(), Refusal(CKR_MECHANISM_INVALID));
    }

    #[test]
    fn what_a_key_cannot_do_is_refused() {
        let refused = |kind, suite| plan(&plain(kind), suite).unwrap_err().0;
        assert_eq!(refused(CKM_SHA256, Suite::FrostEd25519), CKR_MECHANISM_INVALID);
        assert_eq!(refused(CKM_ECDSA, Suite::FrostEd25519), CKR_KEY_TYPE_INCONSISTENT);
        assert_eq!(refused(CKM_SHA512_RSA_PKCS, Suite::Sh00Pkcs1Sha256), CKR_KEY_FUNCTION_NOT_PERMITTED);
        assert_eq!(refused(CKM_RSA_PKCS_PSS, Suite::Sh00PssSha256), CKR_MECHANISM_PARAM_INVALID);
        assert_eq!(refused(CKM_EDDSA, Suite::FrostP256), CKR_KEY_TYPE_INCONSISTENT);
    }

    #[test]
    fn parameters_are_those_of_the_suite() {
        assert_eq!(plan(&pss([CKM_SHA256, CKG_MGF1_SHA256, 32]), Suite::Sh00PssSha256), Ok(Plan::PssDigest));
        for wrong in [[CKM_SHA256, CKG_MGF1_SHA256, 20], [CKM_ECDSA, CKG_MGF1_SHA256, 32], [CKM_SHA256, 1, 32]] {
            assert!(plan(&pss(wrong), Suite::Sh00PssSha256).is_err());
        }
        let eddsa = |parameters: &[u8]| {
            plan(&Mechanism { kind: CKM_EDDSA, parameters: parameters.to_vec() }, Suite::FrostEd25519)
        };
        let (mut pure, mut hashed, mut context) = ([0xab; 24], [0xab; 24], [0xab; 24]);
        (pure[0], hashed[0], context[0]) = (0, 1, 0);
        pure[8..16].fill(0);
        hashed[8..16].fill(0);
        context[8..16].copy_from_slice(&1_u64.to_ne_bytes());
        assert_eq!(eddsa(&pure), Ok(Plan::Message));
        assert!(
            eddsa(&hashed).is_err() && eddsa(&context).is_err() && eddsa(&[0]).is_err() && eddsa(&[0; 25]).is_err()
        );
    }

    #[test]
    fn digests_are_taken_as_the_standards_have_them() {
        let digest = |data: &[u8]| Plan::EcdsaDigest.request(data);
        let long: Vec<u8> = (0..48).collect();
        assert_eq!(digest(&long), Ok(Request::Digest(Bytes::copy_from_slice(&long[..32]))));
        assert_eq!(digest(&[1, 2]), Ok(Request::Digest([vec![0; 30], vec![1, 2]].concat().into())));
        assert_eq!(digest(&[]), Err(Refusal(CKR_DATA_LEN_RANGE)));
        assert_eq!(digest(&[0; 65]), Err(Refusal(CKR_DATA_LEN_RANGE)));

        let info = Plan::DigestInfo(MessageDigest::Sha256);
        let whole = [digest_info(MessageDigest::Sha256), &[7; 32]].concat();
        assert_eq!(whole.len(), 51);
        assert_eq!(info.request(&whole), Ok(Request::Digest(vec![7; 32].into())));
        assert_eq!(info.request(&whole[..50]), Err(Refusal(CKR_DATA_INVALID)));
        assert_eq!(info.request(&[7; 32]), Err(Refusal(CKR_DATA_INVALID)));
        assert_eq!(Plan::DigestInfo(MessageDigest::Sha512).request(&whole), Err(Refusal(CKR_DATA_INVALID)));
    }
}
