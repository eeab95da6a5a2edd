//! Messages that two who share a secret sign (RFC 8945), with HMAC-SHA-256 alone. `domain` has this, too, with a library for cryptography of its
//! own; this workspace has one.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use aws_lc_rs::{constant_time::verify_slices_are_equal, hmac};
use base64ct::{Base64, Encoding as _};
use domain::{
    base::{
        Message,
        iana::{Class, Rtype},
        name::{Name, ToName as _},
        rdata::ComposeRecordData as _,
    },
    rdata::tsig::Tsig,
};

use crate::owner::Owner;

/// The only algorithm, as files of keys call it, and its name in messages.
const ALGORITHM: &str = "hmac-sha256";
const ALGORITHM_NAME: &[u8] = b"\x0bhmac-sha256\0";
/// For how many seconds a message that was signed is good (RFC 8945, section 10).
const FUDGE: u16 = 300;
/// The header of a message.
const HEADER: usize = 12;
/// How many messages in a row may be without a signature; the next one covers them (RFC 8945, section 5.3.1).
const MOST_UNSIGNED: u32 = 99;
/// The longest file of a key, in bytes.
const MOST_FILE: u64 = 4_096;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// Others can read it.
    #[error("{} can be read by others than its owner: take the rights of others away (chmod 600)", .0.display())]
    Mode(PathBuf),
    /// It is no key.
    #[error("{} has no key: write hmac-sha256, the key's name and its secret in base64 on one line, as in hmac-sha256 transfer c2VjcmV0...", .0.display())]
    Text(PathBuf),
}

/// Why a message is not believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TsigError {
    /// It has no signature where there has to be one.
    #[error("a message is not signed")]
    Unsigned,
    /// The signature is not the last record, or not as it has to be.
    #[error("a message has a signature that cannot be read")]
    Malformed,
    /// Another key or algorithm.
    #[error("a message is signed with another key than {0}")]
    Key(String),
    /// The other side does not believe the question.
    #[error("the primary refuses the key: error {0} ({name})", name = name_of(*.0))]
    Refused(u16),
    /// It is wrong.
    #[error("the signature of a message is wrong: it was changed on the way, or the secrets differ")]
    Wrong,
    /// It was made at another time.
    #[error("a message was signed {0} seconds from now: one of the two clocks is wrong")]
    Time(u64),
}

/// RFC 8945, section 3.
const fn name_of(error: u16) -> &'static str {
    match error {
        16 => "BADSIG",
        17 => "BADKEY",
        18 => "BADTIME",
        22 => "BADTRUNC",
        _ => "unknown",
    }
}

/// A secret that is shared with a primary, with its name.
#[derive(Clone, Debug)]
pub struct Key {
    name: Owner,
    secret: hmac::Key,
}

impl Key {
    /// Reads a file that its owner alone can read: `hmac-sha256 name secret`, the secret in base64.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let failed = |reason| KeyError::Read { path: path.to_owned(), reason };
        let data = fs::metadata(path).map_err(failed)?;
        if data.is_file() && data.mode() & 0o077 != 0 {
            return Err(KeyError::Mode(path.to_owned()));
        }
        let text = if data.len() > MOST_FILE { String::new() } else { fs::read_to_string(path).map_err(failed)? };
        Self::parse(&text).ok_or_else(|| KeyError::Text(path.to_owned()))
    }

    /// Reads the line.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [algorithm, name, secret] = *words else { return None };
        let name: Name<Vec<u8>> = name.parse().ok()?;
        let (name, _) = Owner::read(name.as_slice())?;
        let secret = Base64::decode_vec(secret).ok().filter(|secret| !secret.is_empty())?;
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        algorithm.eq_ignore_ascii_case(ALGORITHM).then_some(Self { name, secret })
    }

    /// What a signature covers beside the message (RFC 8945, section 4.3.3).
    fn variables(&self, data: &Data<'_>) -> Vec<u8> {
        let other = u16::try_from(data.other.len()).unwrap_or(u16::MAX);
        let mut bytes = self.name.wire();
        bytes.extend(Class::ANY.to_int().to_be_bytes());
        bytes.extend(0_u32.to_be_bytes());
        bytes.extend(ALGORITHM_NAME);
        bytes.extend(data.timers());
        bytes.extend([data.error.to_be_bytes(), other.to_be_bytes()].concat());
        bytes.extend(data.other);
        bytes
    }
}

/// The data of a TSIG record, but for its algorithm (RFC 8945, section 4.2).
struct Data<'a> {
    time: u64,
    fudge: u16,
    mac: &'a [u8],
    id: [u8; 2],
    error: u16,
    other: &'a [u8],
}

impl<'a> Data<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (time, rest) = bytes.split_first_chunk::<6>()?;
        let [a, b, c, d, e, f] = *time;
        let (fudge, rest) = rest.split_first_chunk()?;
        let (mac, rest) = field(rest)?;
        let (id, rest) = rest.split_first_chunk()?;
        let (error, rest) = rest.split_first_chunk()?;
        let (other, rest) = field(rest)?;
        let time = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        let [fudge, error] = [*fudge, *error].map(u16::from_be_bytes);
        rest.is_empty().then_some(Self { time, fudge, mac, id: *id, error, other })
    }

    /// When it was signed, in 48 bits, and for how long it is good.
    fn timers(&self) -> Vec<u8> {
        let [_, _, time @ ..] = self.time.to_be_bytes();
        [&time[..], &self.fudge.to_be_bytes()].concat()
    }
}

/// Bytes with their length before them.
fn field(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

/// A question and the messages that answer it, as whoever asks sees them.
pub(super) struct Sequence<'a> {
    key: &'a Key,
    /// Of what the next signature is, so far.
    context: hmac::Context,
    is_first: bool,
    unsigned: u32,
}

impl<'a> Sequence<'a> {
    /// Signs a question, which has no additional records yet.
    pub(super) fn request(key: &'a Key, message: &mut Vec<u8>, now: u64) -> Self {
        let mac = sign(key, hmac::Context::with_key(&key.secret), message, now);
        Self { key, context: after(key, mac.as_ref()), is_first: true, unsigned: 0 }
    }

    /// What somebody else asks, who signs with this key: [`Sequence::answer`] checks it.
    pub(super) fn asked(key: &'a Key) -> Self {
        Self { key, context: hmac::Context::with_key(&key.secret), is_first: true, unsigned: 0 }
    }

    /// Signs the answer to what was asked and was good; it has no additional records yet.
    pub(super) fn reply(self, message: &mut Vec<u8>, now: u64) {
        let _ = sign(self.key, self.context, message, now);
    }

    /// Checks the next message of the answer. The first is signed itself; others may be covered by a later one.
    pub(super) fn answer(&mut self, bytes: &[u8], now: u64) -> Result<(), TsigError> {
        let message = Message::from_slice(bytes).map_err(|_| TsigError::Malformed)?;
        let Some((start, name, data)) = signature(message)? else {
            if self.is_first || self.unsigned >= MOST_UNSIGNED {
                return Err(TsigError::Unsigned);
            }
            self.unsigned = self.unsigned.saturating_add(1);
            self.context.update(bytes);
            return Ok(());
        };
        let (algorithm, data) = Owner::read(&data).ok_or(TsigError::Malformed)?;
        if name != self.key.name || algorithm.wire() != ALGORITHM_NAME {
            return Err(TsigError::Key(self.key.name.to_string()));
        }
        let data = Data::read(data).ok_or(TsigError::Malformed)?;
        if data.error != 0 {
            return Err(TsigError::Refused(data.error));
        }
        self.context.update(&before(bytes, start, data.id).ok_or(TsigError::Malformed)?);
        self.context.update(&if self.is_first { self.key.variables(&data) } else { data.timers() });
        let own = self.context.clone().sign();
        verify_slices_are_equal(own.as_ref(), data.mac).map_err(|_| TsigError::Wrong)?;
        let apart = data.time.abs_diff(now);
        if apart > u64::from(data.fudge.min(FUDGE)) {
            return Err(TsigError::Time(apart));
        }
        (self.context, self.is_first, self.unsigned) = (after(self.key, data.mac), false, 0);
        Ok(())
    }

    /// Whether all messages until now are covered by a signature.
    ///
    /// # Errors
    /// [`TsigError::Unsigned`].
    pub(super) const fn finish(&self) -> Result<(), TsigError> {
        if self.is_first || self.unsigned > 0 { Err(TsigError::Unsigned) } else { Ok(()) }
    }
}

/// Signs a message after what is in the context already.
fn sign(key: &Key, mut context: hmac::Context, message: &mut Vec<u8>, now: u64) -> hmac::Tag {
    let id = message.first_chunk().copied().unwrap_or_default();
    let unsigned = Data { time: now, fudge: FUDGE, mac: &[], id, error: 0, other: &[] };
    context.update(message);
    context.update(&key.variables(&unsigned));
    let tag = context.sign();
    let mac = tag.as_ref();
    let length = u16::try_from(mac.len()).unwrap_or(u16::MAX).to_be_bytes();
    let data = [ALGORITHM_NAME, &unsigned.timers(), &length, mac, &id, &[0; 4]].concat();
    message.extend(key.name.wire());
    message.extend([Rtype::TSIG.to_int().to_be_bytes(), Class::ANY.to_int().to_be_bytes(), [0; 2], [0; 2]].concat());
    message.extend(u16::try_from(data.len()).unwrap_or(u16::MAX).to_be_bytes());
    message.extend(data);
    message.iter_mut().skip(HEADER - 1).take(1).for_each(|count| *count = 1);
    tag
}

/// What follows a signature is signed together with it (RFC 8945, section 5.3).
fn after(key: &Key, mac: &[u8]) -> hmac::Context {
    let mut context = hmac::Context::with_key(&key.secret);
    context.update(&u16::try_from(mac.len()).unwrap_or(u16::MAX).to_be_bytes());
    context.update(mac);
    context
}

/// Where the TSIG record of a message begins, its name and its data. It is the last record, or there is none.
fn signature(message: &Message<[u8]>) -> Result<Option<(usize, Owner, Vec<u8>)>, TsigError> {
    let mut section = message.additional().map_err(|_| TsigError::Malformed)?;
    loop {
        let start = section.pos();
        let Some(record) = section.next() else { return Ok(None) };
        let record = record.map_err(|_| TsigError::Malformed)?;
        if record.rtype() != Rtype::TSIG {
            continue;
        }
        let record = record.to_record::<Tsig<_, _>>().ok().flatten().ok_or(TsigError::Malformed)?;
        let name: Name<Vec<u8>> = record.owner().to_name();
        let (name, _) = Owner::read(name.as_slice()).ok_or(TsigError::Malformed)?;
        let mut data = Vec::new();
        record.data().compose_rdata(&mut data).map_err(|_| TsigError::Malformed)?;
        // Class and time to live are what the signature covers in their place (RFC 8945, section 4.2).
        let good = section.next().is_none() && record.class() == Class::ANY && record.ttl().as_secs() == 0;
        return if good { Ok(Some((start, name, data))) } else { Err(TsigError::Malformed) };
    }
}

/// The message as it was before it was signed.
fn before(bytes: &[u8], start: usize, id: [u8; 2]) -> Option<Vec<u8>> {
    let (header, body) = bytes.get(..start)?.split_first_chunk::<HEADER>()?;
    let [_, _, counts @ .., high, low] = *header;
    let additional = u16::from_be_bytes([high, low]).checked_sub(1)?;
    Some([&id[..], &counts, &additional.to_be_bytes(), body].concat())
}
