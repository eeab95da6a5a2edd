//! What a signature of a record set covers: RRSIG's own fields without the signature, then the records in canonical form and order
//! (RFC 4034, sections 3.1.8.1 and 6). With Ed25519 a signer sends all of it.

use std::collections::BTreeSet;

use crate::owner::Owner;

/// The class of the Internet.
const INTERNET: u16 = 1;
/// The most records of a set that is looked at.
const MOST_RECORDS: usize = 4_096;

/// A record set that is to be signed, with what the signature says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedSet {
    /// The type of the records.
    pub rtype: u16,
    /// The algorithm of the signature, as DNSSEC numbers them.
    pub algorithm: u8,
    /// How many labels the owner has.
    pub labels: u8,
    /// The time to live that the records have at their origin, in seconds.
    pub ttl: u32,
    /// When the signature ends, in seconds since 1970, modulo 2^32.
    pub expiration: u32,
    /// When it begins.
    pub inception: u32,
    /// The tag of the key.
    pub tag: u16,
    /// The zone.
    pub signer: Owner,
    /// The name of the records.
    pub owner: Owner,
    /// Their data in canonical form.
    pub data: BTreeSet<Vec<u8>>,
}

fn number16(bytes: &mut &[u8]) -> Option<u16> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u16::from_be_bytes(*number))
}

fn number32(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_be_bytes(*number))
}

fn name(bytes: &mut &[u8]) -> Option<Owner> {
    let before = *bytes;
    let (owner, rest) = Owner::read(before)?;
    *bytes = rest;
    // In canonical form already, so that there is one form.
    let written = before.len().checked_sub(rest.len())?;
    (owner.wire() == before.get(..written)?).then_some(owner)
}

impl SignedSet {
    /// Reads what is to be signed. `None`: it is no record set in canonical form.
    #[must_use]
    pub fn read(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let rtype = number16(bytes)?;
        let [algorithm, labels] = number16(bytes)?.to_be_bytes();
        let (ttl, expiration, inception) = (number32(bytes)?, number32(bytes)?, number32(bytes)?);
        let (tag, signer) = (number16(bytes)?, name(bytes)?);
        let (mut owner, mut data, mut last) = (None, BTreeSet::new(), None);
        while !bytes.is_empty() {
            let of = name(bytes)?;
            let same = owner.as_ref().is_none_or(|owner| *owner == of);
            owner = Some(of);
            let fields = (number16(bytes)?, number16(bytes)?, number32(bytes)?);
            if !same || fields != (rtype, INTERNET, ttl) || data.len() >= MOST_RECORDS {
                return None;
            }
            let length = usize::from(number16(bytes)?);
            let (one, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            // Each once, and in order.
            if last.as_ref().is_some_and(|last: &Vec<u8>| last.as_slice() >= one) {
                return None;
            }
            last = Some(one.to_vec());
            data.insert(one.to_vec());
        }
        Some(Self { rtype, algorithm, labels, ttl, expiration, inception, tag, signer, owner: owner?, data })
    }

    /// The bytes that [`Self::read`] reads.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = self.rtype.to_be_bytes().to_vec();
        bytes.extend([self.algorithm, self.labels]);
        for number in [self.ttl, self.expiration, self.inception] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(self.tag.to_be_bytes());
        bytes.extend(self.signer.wire());
        for data in &self.data {
            bytes.extend(self.owner.wire());
            bytes.extend([self.rtype.to_be_bytes(), INTERNET.to_be_bytes()].concat());
            bytes.extend(self.ttl.to_be_bytes());
            bytes.extend(u16::try_from(data.len()).unwrap_or(u16::MAX).to_be_bytes());
            bytes.extend(data);
        }
        bytes
    }
}
