//! The keys that the operators have agreed on for the zone.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256, Sha384};

use crate::owner::Owner;

/// Ed25519, as DNSSEC numbers algorithms (RFC 8080).
pub const ED25519: u8 = 15;
/// The only protocol of DNSKEY records (RFC 4034, section 2.1.2).
const PROTOCOL: u8 = 3;
/// The flags of keys that sign the zone, and of those that sign its keys.
const FLAGS: [u16; 2] = [256, 257];

/// Public keys of Ed25519, each of 32 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys(BTreeSet<[u8; 32]>);

impl Keys {
    /// Reads a text with a key in hexadecimal digits on each line, as `theta keys export NAME --format hex` prints it. Lines that begin
    /// with # are comments.
    ///
    /// # Errors
    /// The number of the first line that is no key.
    pub fn parse(text: &str) -> Result<Self, usize> {
        let lines = text.lines().map(str::trim).zip(1..).filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
        let key = |(line, number): (&str, usize)| {
            let mut key = [0; 32];
            hex::decode_to_slice(line, &mut key).map(|()| key).map_err(|_| number)
        };
        lines.map(key).collect::<Result<_, _>>().map(Self)
    }

    /// Whether the data of a DNSKEY or CDNSKEY record are one of these keys.
    #[must_use]
    pub fn has_record(&self, data: &[u8]) -> bool {
        let Some((head, key)) = data.split_first_chunk::<4>() else { return false };
        let [high, low, protocol, algorithm] = *head;
        let flags = u16::from_be_bytes([high, low]);
        let good = FLAGS.contains(&flags) && protocol == PROTOCOL && algorithm == ED25519;
        good && <[u8; 32]>::try_from(key).is_ok_and(|key| self.0.contains(&key))
    }

    /// Whether the data of a CDS record are a digest of one of these keys at this name (RFC 4034, section 5.1.4; RFC 6605).
    #[must_use]
    pub fn has_digest(&self, owner: &Owner, data: &[u8]) -> bool {
        let Some((head, digest)) = data.split_first_chunk::<4>() else { return false };
        let [tag_high, tag_low, algorithm, kind] = *head;
        let matches = |key: &[u8; 32], flags: u16| {
            let record = [&flags.to_be_bytes()[..], &[PROTOCOL, ED25519], key].concat();
            let whole = [owner.wire(), record.clone()].concat();
            let own = match kind {
                2 => Sha256::digest(&whole).to_vec(),
                4 => Sha384::digest(&whole).to_vec(),
                _ => return false,
            };
            own == digest && tag(&record) == u16::from_be_bytes([tag_high, tag_low])
        };
        algorithm == ED25519 && self.0.iter().any(|key| FLAGS.iter().any(|flags| matches(key, *flags)))
    }
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
    use base64ct::{Base64, Encoding as _};

    use super::*;

    /// The examples of RFC 8080, section 6.
    #[test]
    fn digests_of_rfc_8080_are_recognised() {
        let (owner, _) = Owner::read(b"\x07example\x03com\0").unwrap();
        for (key, tag, digest) in [
            (
                "l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=",
                3613_u16,
                "3aa5ab37efce57f737fc1627013fee07bdf241bd10f3b1964ab55c78e79a304b",
            ),
            (
                "zPnZ/QwEe7S8C5SPz2OfS5RR40ATk2/rYnE9xHIEijs=",
                35217,
                "401781b934e392de492ec77ae2e15d70f6575a1c0bc59c5275c04ebe80c6614c",
            ),
        ] {
            let key = Base64::decode_vec(key).unwrap();
            let keys = Keys::parse(&format!("# The zone's key.\n{}\n", hex::encode(&key))).unwrap();
            assert!(keys.has_record(&[&[1, 1, 3, 15], &key[..]].concat()));
            assert!(!keys.has_record(&[&[1, 1, 3, 13], &key[..]].concat()) && !keys.has_record(&[1, 1, 3, 15]));
            let record = [&tag.to_be_bytes()[..], &[15, 2], &hex::decode(digest).unwrap()].concat();
            assert!(keys.has_digest(&owner, &record));
            let mut bent = record.clone();
            bent[8] ^= 1;
            assert!(!keys.has_digest(&owner, &bent) && !Keys::default().has_digest(&owner, &record));
        }
        assert_eq!(Keys::parse("# none\nno key\n"), Err(2));
    }
}
