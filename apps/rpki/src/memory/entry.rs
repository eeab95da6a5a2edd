//! The lines of a memory.

use std::{fmt, str::FromStr};

use super::{Counted, Digest, Number};

/// In the place of the end of a statement that has none: it withdraws.
const NO_END: &str = "-";

/// Something that was agreed to, or has counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A certificate.
    Certificate {
        /// Who certifies.
        authority: String,
        /// The serial number.
        serial: Number,
        /// SHA-256 of what was to be signed.
        digest: Digest,
        /// The name of the file that the certificate is for, or is in.
        file: String,
        /// When it begins, in seconds since 1970.
        from: i64,
        /// When it ends, in seconds since 1970.
        until: i64,
        /// The identifier of the certified key.
        key: Number,
    },
    /// A list of revoked certificates.
    List {
        /// Whose.
        authority: String,
        /// Its number.
        number: Number,
        /// SHA-256 of what was to be signed.
        digest: Digest,
        /// When it begins (thisUpdate), in seconds since 1970.
        from: i64,
    },
    /// A certificate that a list revokes, and that was agreed to before.
    Revoked {
        /// Whose.
        authority: String,
        /// Its serial number.
        serial: Number,
    },
    /// A certificate that is on a manifest in the place of what was in its file before, or that operators permit: when its object is withdrawn,
    /// lists have to revoke it.
    Published {
        /// Whose.
        authority: String,
        /// Its serial number.
        serial: Number,
        /// The name of the file that it is in.
        file: String,
        /// When that manifest begins, in seconds since 1970.
        from: i64,
        /// When the certificate ends, in seconds since 1970.
        until: i64,
    },
    /// A manifest.
    Manifest {
        /// Whose.
        authority: String,
        /// Its number.
        number: Number,
        /// SHA-256 of its content.
        digest: Digest,
        /// The identifier of the key that signs it.
        key: Number,
        /// When it begins (thisUpdate), in seconds since 1970.
        from: i64,
        /// When the next one is due (nextUpdate), in seconds since 1970.
        until: i64,
    },
    /// The content that an object's key signs.
    Content {
        /// The key's identifier.
        key: Number,
        /// SHA-256 of the content.
        digest: Digest,
        /// Whose object it is.
        authority: String,
        /// When that was agreed to, in seconds since 1970.
        from: i64,
    },
    /// A statement of a member that decided about something.
    Statement {
        /// The member's handle.
        member: String,
        /// What it is about, in a word without spaces.
        subject: String,
        /// Which it is.
        counted: Counted,
    },
}

impl Entry {
    /// When what was agreed to begins, in seconds since 1970.
    #[must_use]
    pub fn begins(&self) -> Option<i64> {
        match self {
            Self::Certificate { from, .. }
            | Self::List { from, .. }
            | Self::Manifest { from, .. }
            | Self::Content { from, .. } => Some(*from),
            Self::Revoked { .. } | Self::Published { .. } | Self::Statement { .. } => None,
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate { authority, serial, digest, file, from, until, key } => {
                let [serial, digest, key] = [&serial[..], digest, key].map(hex::encode);
                write!(f, "certificate {authority} {serial} {digest} {file} {from} {until} {key}")
            }
            Self::List { authority, number, digest, from } => {
                write!(f, "list {authority} {} {} {from}", hex::encode(number), hex::encode(digest))
            }
            Self::Revoked { authority, serial } => write!(f, "revoked {authority} {}", hex::encode(serial)),
            Self::Published { authority, serial, file, from, until } => {
                write!(f, "published {authority} {} {file} {from} {until}", hex::encode(serial))
            }
            Self::Manifest { authority, number, digest, key, from, until } => {
                let [number, digest, key] = [&number[..], digest, key].map(hex::encode);
                write!(f, "manifest {authority} {number} {digest} {key} {from} {until}")
            }
            Self::Content { key, digest, authority, from } => {
                write!(f, "content {} {} {authority} {from}", hex::encode(key), hex::encode(digest))
            }
            Self::Statement { member, subject, counted: Counted { number, digest, until } } => {
                write!(f, "statement {member} {subject} {number} {} ", hex::encode(digest))?;
                match until {
                    Some(until) => write!(f, "{until}"),
                    None => f.write_str(NO_END),
                }
            }
        }
    }
}

fn digits<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).ok().map(|()| bytes)
}

impl FromStr for Entry {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let words: Vec<_> = line.split(' ').collect();
        let read = || match *words.as_slice() {
            ["certificate", authority, serial, digest, file, from, until, key] => Some(Self::Certificate {
                authority: authority.to_owned(),
                serial: digits(serial)?,
                digest: digits(digest)?,
                file: file.to_owned(),
                from: from.parse().ok()?,
                until: until.parse().ok()?,
                key: digits(key)?,
            }),
            ["list", authority, number, digest, from] => Some(Self::List {
                authority: authority.to_owned(),
                number: digits(number)?,
                digest: digits(digest)?,
                from: from.parse().ok()?,
            }),
            ["revoked", authority, serial] => {
                Some(Self::Revoked { authority: authority.to_owned(), serial: digits(serial)? })
            }
            ["published", authority, serial, file, from, until] => Some(Self::Published {
                authority: authority.to_owned(),
                serial: digits(serial)?,
                file: file.to_owned(),
                from: from.parse().ok()?,
                until: until.parse().ok()?,
            }),
            ["manifest", authority, number, digest, key, from, until] => Some(Self::Manifest {
                authority: authority.to_owned(),
                number: digits(number)?,
                digest: digits(digest)?,
                key: digits(key)?,
                from: from.parse().ok()?,
                until: until.parse().ok()?,
            }),
            ["content", key, digest, authority, from] => Some(Self::Content {
                key: digits(key)?,
                digest: digits(digest)?,
                authority: authority.to_owned(),
                from: from.parse().ok()?,
            }),
            ["statement", member, subject, number, digest, until] => {
                let until = if until == NO_END { None } else { Some(until.parse().ok()?) };
                let counted = Counted { number: number.parse().ok()?, digest: digits(digest)?, until };
                Some(Self::Statement { member: member.to_owned(), subject: subject.to_owned(), counted })
            }
            _ => None,
        };
        read().ok_or(())
    }
}
