//! The keys that the operators have agreed on for the zone.

use std::collections::{BTreeMap, BTreeSet};

use base64ct::{Base64, Encoding as _};
use sha2::{Digest as _, Sha256, Sha384};

use crate::owner::Owner;

/// RSA with SHA-256, as DNSSEC numbers algorithms (RFC 5702).
pub const RSA_SHA256: u8 = 8;
/// ECDSA on P-256 with SHA-256 (RFC 6605).
pub const P256_SHA256: u8 = 13;
/// Ed25519 (RFC 8080).
pub const ED25519: u8 = 15;
/// The only protocol of DNSKEY records (RFC 4034, section 2.1.2).
const PROTOCOL: u8 = 3;
/// The flags of keys that sign the zone, and of those that sign its keys.
const FLAGS: [u16; 2] = [256, 257];
/// The most keys that may be in a zone at a time. What is tried to recognise a digest grows with them.
pub const MOST_KEYS: usize = 64;

/// Who signs, as a signature says it: the algorithm of a key, and its tag, which depends on its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signer {
    /// The algorithm, as DNSSEC numbers them.
    pub algorithm: u8,
    /// The tag (RFC 4034, appendix B).
    pub tag: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    algorithm: u8,
    public: Vec<u8>,
}

/// What a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Everything: which flags it has is the name server's matter.
    Any,
    /// The zone's keys, and nothing else. Its flags are 257.
    Keys,
    /// The zone, and its keys only if there is no key of another role. Its flags are 256.
    Zone,
}

impl Role {
    const fn flags(self) -> &'static [u16] {
        match self {
            Self::Any => &FLAGS,
            Self::Keys => &[257],
            Self::Zone => &[256],
        }
    }
}

/// Public keys of Ed25519, of ECDSA on P-256, and of RSA with SHA-256, each with its role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys(BTreeMap<Key, Role>);

impl Keys {
    /// Reads a text with a key on each line: the data of a DNSKEY record, as `theta keys export NAME --format dnskey` prints it, or for
    /// Ed25519 its 64 hexadecimal digits (`--format hex`). Before it may be its role: `ksk` signs the zone's keys ([`Role::Keys`]), `zsk` the
    /// zone ([`Role::Zone`]); without one of them flags of 256 and 257 are the same here. Lines that begin with # or ; are comments.
    ///
    /// # Errors
    /// The number of the first line that is no key, a key that was there with another role, or one too many ([`MOST_KEYS`]).
    pub fn parse(text: &str) -> Result<Self, usize> {
        let lines = text.lines().map(str::trim).zip(1..);
        let mut keys = BTreeMap::new();
        for (line, number) in lines.filter(|(line, _)| !line.is_empty() && !line.starts_with(['#', ';'])) {
            let (role, line) = split_role(line);
            let key = of_digits(line).or_else(|| of_record(line)).ok_or(number)?;
            if *keys.entry(key).or_insert(role) != role || keys.len() > MOST_KEYS {
                return Err(number);
            }
        }
        Ok(Self(keys))
    }

    /// The algorithms of the keys.
    #[must_use]
    pub fn algorithms(&self) -> BTreeSet<u8> {
        self.0.keys().map(|key| key.algorithm).collect()
    }

    /// Who may sign: each key with the tags of the flags that it may have, and its role.
    #[must_use]
    pub fn signers(&self) -> Vec<(Signer, Role)> {
        let signer = |key: &Key, flags| Signer { algorithm: key.algorithm, tag: tag(&record(key, flags)) };
        let of_key = |(key, role): (&Key, &Role)| -> Vec<_> {
            role.flags().iter().map(|flags| (signer(key, *flags), *role)).collect()
        };
        self.0.iter().flat_map(of_key).collect()
    }

    /// Those of them who may sign by a digest of what is signed: their algorithms begin with SHA-256.
    #[must_use]
    pub fn signers_of_digests(&self) -> Vec<Signer> {
        let signers = self.signers().into_iter().map(|(signer, _)| signer);
        signers.filter(|signer| signer.algorithm != ED25519).collect()
    }

    /// Whether whoever signs with this algorithm and tag may sign sets of keys (DNSKEY, CDS and CDNSKEY), or others. What is signed with another
    /// key than that of the tag is worth nothing: resolvers take the key that has it.
    ///
    /// # Errors
    /// The objection.
    pub fn may_sign(&self, signer: Signer, of_keys: bool) -> Result<(), String> {
        let signers = self.signers().into_iter();
        let roles: Vec<Role> = signers.filter(|(own, _)| *own == signer).map(|(_, role)| role).collect();
        let Signer { algorithm, tag } = signer;
        if roles.is_empty() {
            return Err(format!("no key of the zone has the algorithm {algorithm} and the tag {tag}"));
        }
        // Two keys with one tag are rare; then both have to be allowed to.
        if roles.contains(&Role::Keys) && !of_keys {
            return Err(format!(
                "the key with the tag {tag} signs DNSKEY, CDS and CDNSKEY records, and nothing else (ksk)"
            ));
        }
        let others = self.0.values().any(|role| *role != Role::Zone);
        if roles.contains(&Role::Zone) && of_keys && others {
            return Err(format!(
                "the key with the tag {tag} signs no DNSKEY, CDS or CDNSKEY records (zsk): there are other keys for that"
            ));
        }
        Ok(())
    }

    /// The data of the DNSKEY records that each key may have: with the flags of its role.
    #[must_use]
    pub fn records(&self) -> Vec<Vec<Vec<u8>>> {
        let of_key = |(key, role): (&Key, &Role)| role.flags().iter().map(|flags| record(key, *flags)).collect();
        self.0.iter().map(of_key).collect()
    }

    /// The data of the records of keys that the parent may have: of those that sign keys.
    #[must_use]
    pub fn entries(&self) -> Vec<Vec<u8>> {
        let keys = self.0.iter().filter(|(_, role)| **role != Role::Zone);
        keys.map(|(key, _)| record(key, 257)).collect()
    }

    /// Whether the data of a DNSKEY record are one of these keys.
    #[must_use]
    pub fn has_record(&self, data: &[u8]) -> bool {
        self.role(data).is_some()
    }

    /// Whether the data of a CDNSKEY record are one of these keys, which the parent may have.
    #[must_use]
    pub fn has_entry(&self, data: &[u8]) -> bool {
        self.role(data).is_some_and(|role| role != Role::Zone)
    }

    /// The role of the key with these data, if its flags are those of the role.
    fn role(&self, data: &[u8]) -> Option<Role> {
        let (head, public) = data.split_first_chunk::<4>()?;
        let [high, low, protocol, algorithm] = *head;
        let role = self.0.get(&Key { algorithm, public: public.to_vec() }).copied()?;
        let good = role.flags().contains(&u16::from_be_bytes([high, low])) && protocol == PROTOCOL;
        good.then_some(role)
    }

    /// Whether the data of a CDS record are a digest of one of these keys, which the parent may have, at this name (RFC 4034, section 5.1.4;
    /// RFC 6605).
    #[must_use]
    pub fn has_digest(&self, owner: &Owner, data: &[u8]) -> bool {
        let Some(kind) = data.get(3) else { return false };
        let is = |key: &Key, flags| digest(owner, &record(key, flags), *kind).as_deref() == Some(data);
        let mut keys = self.0.iter().filter(|(_, role)| **role != Role::Zone);
        keys.any(|(key, role)| role.flags().iter().any(|flags| is(key, *flags)))
    }
}

/// The role that a line begins with, and the key after it.
fn split_role(line: &str) -> (Role, &str) {
    match line.split_once(char::is_whitespace) {
        Some(("ksk", key)) => (Role::Keys, key.trim_start()),
        Some(("zsk", key)) => (Role::Zone, key.trim_start()),
        _ => (Role::Any, line),
    }
}

/// Ed25519 in hexadecimal digits.
fn of_digits(line: &str) -> Option<Key> {
    let mut key = [0; 32];
    hex::decode_to_slice(line, &mut key).ok()?;
    Some(Key { algorithm: ED25519, public: key.to_vec() })
}

/// Flags, protocol, algorithm and key, which may have spaces in it (RFC 4034, section 2.2).
fn of_record(line: &str) -> Option<Key> {
    let mut words = line.split_whitespace();
    let flags: u16 = words.next()?.parse().ok()?;
    let protocol: u8 = words.next()?.parse().ok()?;
    let algorithm: u8 = words.next()?.parse().ok()?;
    let public = Base64::decode_vec(&words.collect::<String>()).ok()?;
    let fits = match algorithm {
        ED25519 => public.len() == 32,
        P256_SHA256 => public.len() == 64,
        RSA_SHA256 => is_rsa(&public),
        _ => false,
    };
    (FLAGS.contains(&flags) && protocol == PROTOCOL && fits).then_some(Key { algorithm, public })
}

/// The exponent's length, the exponent, and a modulus of 512 to 4,096 bits (RFC 3110, section 2; RFC 5702, section 2.1).
fn is_rsa(public: &[u8]) -> bool {
    let modulus = match public {
        [0, high, low, rest @ ..] => rest.get(usize::from(u16::from_be_bytes([*high, *low]))..),
        [length, rest @ ..] => rest.get(usize::from(*length)..),
        [] => None,
    };
    modulus.is_some_and(|modulus| (64..=512).contains(&modulus.len()))
}

/// The data of a DNSKEY record.
fn record(key: &Key, flags: u16) -> Vec<u8> {
    [&flags.to_be_bytes()[..], &[PROTOCOL, key.algorithm], &key.public].concat()
}

/// The data of the CDS record for a DNSKEY record at this name, of a kind of digest: 2 is SHA-256, 4 SHA-384 (RFC 4034, section 5.1).
#[must_use]
pub fn digest(owner: &Owner, record: &[u8], kind: u8) -> Option<Vec<u8>> {
    let whole = [&owner.wire(), record].concat();
    let digest = match kind {
        2 => Sha256::digest(&whole).to_vec(),
        4 => Sha384::digest(&whole).to_vec(),
        _ => return None,
    };
    let algorithm = *record.get(3)?;
    Some([&tag(record).to_be_bytes()[..], &[algorithm, kind], &digest].concat())
}

/// The tag of a DNSKEY record (RFC 4034, appendix B).
fn tag(record: &[u8]) -> u16 {
    let pairs = record.chunks(2).map(|pair| match pair {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        [high] => u32::from(*high) << 8,
        _ => 0,
    });
    let sum = pairs.fold(0_u32, u32::saturating_add);
    let [_, _, high, low] = sum.saturating_add(sum >> 16).to_be_bytes();
    u16::from_be_bytes([high, low])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 8080, section 6, and of RFC 6605, section 6.1: key, tag, kind and digest.
    const EXAMPLES: [(&str, u8, &str, u16, u8, &str); 3] = [
        (
            "example.com",
            15,
            "l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=",
            3_613,
            2,
            "3aa5ab37efce57f737fc1627013fee07bdf241bd10f3b1964ab55c78e79a304b",
        ),
        (
            "example.com",
            15,
            "zPnZ/QwEe7S8C5SPz2OfS5RR40ATk2/rYnE9xHIEijs=",
            35_217,
            2,
            "401781b934e392de492ec77ae2e15d70f6575a1c0bc59c5275c04ebe80c6614c",
        ),
        (
            "example.net",
            13,
            "GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA==",
            55_648,
            2,
            "b4c8c1fe2e7477127b27115656ad6256f424625bf5c1e2770ce6d6e37df61d17",
        ),
    ];

    fn owner(name: &str) -> Owner {
        let labels =
            name.split('.').flat_map(|label| [&[u8::try_from(label.len()).unwrap()], label.as_bytes()].concat());
        Owner::read(&labels.chain([0]).collect::<Vec<_>>()).unwrap().0
    }

    #[test]
    fn keys_and_digests_of_the_standards_are_recognised() {
        for (name, algorithm, text, tag, kind, digest) in EXAMPLES {
            let public = Base64::decode_vec(text).unwrap();
            let keys = Keys::parse(&format!("; The zone's key.\n256 3 {algorithm} {text}\n")).unwrap();
            assert!(keys.has_record(&[&[1, 1, 3, algorithm], &public[..]].concat()));
            assert!(keys.has_record(&[&[1, 0, 3, algorithm], &public[..]].concat()));
            assert!(!keys.has_record(&[&[1, 2, 3, algorithm], &public[..]].concat()), "other flags");
            assert!(!keys.has_record(&[&[1, 1, 3, 14], &public[..]].concat()) && !keys.has_record(&[1, 1, 3, 15]));
            let record = [&tag.to_be_bytes()[..], &[algorithm, kind], &hex::decode(digest).unwrap()].concat();
            assert!(keys.has_digest(&owner(name), &record), "{text}");
            let mut bent = record.clone();
            bent[8] ^= 1;
            assert!(!keys.has_digest(&owner(name), &bent) && !Keys::default().has_digest(&owner(name), &record));
            let signers = keys.signers_of_digests();
            assert_eq!(signers.contains(&Signer { algorithm, tag }), algorithm != ED25519, "{signers:?}");
        }
    }

    /// The key of RFC 5702, section 6.1.
    #[test]
    fn keys_of_rsa_have_the_tags_of_rfc_5702() {
        let line = "256 3 8 AwEAAcFcGsaxxdgiuuGmCkVI my4h99CqT7jwY3pexPGcnUFtR2Fh36BponcwtkZ4cAgtvd4Qs8P \
                    kxUdp6p/DlUmObdk=";
        assert_eq!(Keys::parse(line).unwrap().signers_of_digests()[0], Signer { algorithm: 8, tag: 9_033 });
    }

    #[test]
    fn keys_are_read_in_both_forms_and_nothing_else_is() {
        let digits = hex::encode([7; 32]);
        let text = format!("# One in two forms.\n{digits}\n257 3 15 {}\n", Base64::encode_string(&[7; 32]));
        let keys = Keys::parse(&text).unwrap();
        assert_eq!((keys.records().len(), keys.algorithms()), (1, BTreeSet::from([15])));
        assert_eq!(Keys::parse("# none\nno key\n"), Err(2));
        let short = Base64::encode_string(&[7; 31]);
        for line in
            ["257 3 15", &format!("257 3 15 {short}"), &format!("257 3 13 {short}"), &format!("257 3 8 {short}")]
        {
            assert_eq!(Keys::parse(line), Err(1), "{line}");
        }
        let good = Base64::encode_string(&[7; 32]);
        for line in [format!("0 3 15 {good}"), format!("257 2 15 {good}"), format!("257 3 16 {good}")] {
            assert_eq!(Keys::parse(&line), Err(1), "{line}");
        }
        for line in ["ksk", &format!("csk {digits}"), &format!("ksk zsk {digits}"), &format!("ksk{digits}")] {
            assert_eq!(Keys::parse(line), Err(1), "{line}");
        }
        assert_eq!(Keys::parse(&format!("ksk {digits}\nksk  257 3 15 {good}\nzsk {digits}\n")), Err(3), "two roles");
        let many: String = (0..=u8::try_from(MOST_KEYS).unwrap()).map(|key| hex::encode([key; 32]) + "\n").collect();
        assert_eq!(Keys::parse(&many), Err(MOST_KEYS + 1));
    }

    /// Three keys, one of each role: which records they may have, and what they sign.
    #[test]
    fn keys_have_roles() {
        let [one, two, three] = [1_u8, 2, 3].map(|key| hex::encode([key; 32]));
        let keys = Keys::parse(&format!("ksk {one}\nzsk {two}\n{three}\n")).unwrap();
        let data = |flags, key: u8| record(&Key { algorithm: ED25519, public: vec![key; 32] }, flags);
        let may = |flags, key, of_keys| {
            keys.may_sign(Signer { algorithm: ED25519, tag: tag(&data(flags, key)) }, of_keys).map_err(|said| {
                let words = ["no key of the zone has", "and nothing else (ksk)", "there are other keys for that"];
                words.iter().position(|words| said.contains(words)).unwrap()
            })
        };
        // Flags, key, whether it may be a DNSKEY and a CDNSKEY record, and sign keys and the zone.
        for (flags, key, here, above, signs_keys, signs_zone) in [
            (257, 1, true, true, Ok(()), Err(1)),
            (256, 1, false, false, Err(0), Err(0)),
            (257, 2, false, false, Err(0), Err(0)),
            (256, 2, true, false, Err(2), Ok(())),
            (257, 3, true, true, Ok(()), Ok(())),
            (256, 3, true, true, Ok(()), Ok(())),
            (256, 4, false, false, Err(0), Err(0)),
        ] {
            let record = data(flags, key);
            assert_eq!((keys.has_record(&record), keys.has_entry(&record)), (here, above), "{flags} {key}");
            let cds = digest(&owner("example"), &record, 2).unwrap();
            assert_eq!(keys.has_digest(&owner("example"), &cds), above, "{flags} {key}");
            assert_eq!((may(flags, key, true), may(flags, key, false)), (signs_keys, signs_zone), "{flags} {key}");
        }
        assert_eq!(keys.records(), [vec![data(257, 1)], vec![data(256, 2)], vec![data(256, 3), data(257, 3)]]);
        assert_eq!(keys.entries(), [data(257, 1), data(257, 3)]);
        // Without a key that signs keys, those that sign the zone have to.
        let zone = Keys::parse(&format!("zsk {two}")).unwrap();
        let signer = zone.signers()[0].0;
        assert_eq!((zone.may_sign(signer, true), zone.may_sign(signer, false)), (Ok(()), Ok(())));
    }
}
