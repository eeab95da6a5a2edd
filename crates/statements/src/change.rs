//! Changes of keys, and the statements that policies, approvals and signatures are about.

use theta_groups::Transcript;
use theta_names::codec::{DecodeError, Reader, Writer};
use theta_names::{Delivery, KeyName, KeyState, Operation, SuiteName, Version};

/// The version of the encoding.
const FORMAT: u8 = 1;

/// What a ceremony shall do with a key.
///
/// A [`CeremonyRequest`] adds a nonce to it; that request's encoding is the statement that policies decide on, approvals consent to
/// and clients sign. Neither names the group: the terms that are signed do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyChange {
    /// Make a new key, under a name that no key ever had.
    Create {
        /// The new key's name.
        key: KeyName,
        /// The scheme and group.
        suite: SuiteName,
        /// Who makes shares for a request.
        delivery: Delivery,
        /// k: how many shares it takes to use the key.
        k: u16,
        /// The numbers of the nodes that will hold the shares; the holder of share index i is at place i - 1.
        holders: Vec<u16>,
    },
    /// Make the next version: another key under the same name, with suite, delivery, k and holders of the primary version.
    Rotate {
        /// Which key.
        key: KeyName,
    },
    /// Give the same holders new shares of the same key.
    Refresh {
        /// Which key.
        key: KeyName,
        /// Which version; `None` is the primary one.
        version: Option<Version>,
    },
    /// Give these holders new shares of the same key, with this k.
    Reshare {
        /// Which key.
        key: KeyName,
        /// Which version; `None` is the primary one.
        version: Option<Version>,
        /// k afterwards.
        k: u16,
        /// The holders afterwards, as in [`KeyChange::Create`].
        holders: Vec<u16>,
    },
    /// Restore one holder's lost share.
    Recover {
        /// Which key.
        key: KeyName,
        /// Which version; `None` is the primary one.
        version: Option<Version>,
        /// The number of the node that lost it.
        node: u16,
    },
}

impl KeyChange {
    /// The key's name.
    #[must_use]
    pub const fn key(&self) -> &KeyName {
        match self {
            Self::Create { key, .. }
            | Self::Rotate { key }
            | Self::Refresh { key, .. }
            | Self::Reshare { key, .. }
            | Self::Recover { key, .. } => key,
        }
    }

    /// The version that it names. `None` is the primary one, or for a change that makes a version, the new one.
    #[must_use]
    pub const fn version(&self) -> Option<Version> {
        match self {
            Self::Create { .. } | Self::Rotate { .. } => None,
            Self::Refresh { version, .. } | Self::Reshare { version, .. } | Self::Recover { version, .. } => *version,
        }
    }

    /// `create`, `rotate`, `refresh`, `reshare` or `recover`.
    #[must_use]
    pub const fn aim(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Rotate { .. } => "rotate",
            Self::Refresh { .. } => "refresh",
            Self::Reshare { .. } => "reshare",
            Self::Recover { .. } => "recover",
        }
    }

    /// The operation that policies decide on.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        match self {
            Self::Create { .. } => Operation::KeysCreate,
            Self::Rotate { .. } => Operation::KeysRotate,
            Self::Refresh { .. } => Operation::KeysRefresh,
            Self::Reshare { .. } => Operation::KeysReshare,
            Self::Recover { .. } => Operation::KeysRecover,
        }
    }

    /// Format (1), tag (1), then the fields in their order: a word after its length in one byte, a list of nodes after its length
    /// in two.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let writer = Writer::new(FORMAT);
        match self {
            Self::Create { key, suite, delivery, k, holders } => {
                let writer = writer.u8(1).word(key.as_str()).word(suite.as_str());
                writer.delivery(*delivery).u16(*k).nodes(holders)
            }
            Self::Rotate { key } => writer.u8(2).word(key.as_str()),
            Self::Refresh { key, version } => writer.u8(3).word(key.as_str()).named_version(*version),
            Self::Reshare { key, version, k, holders } => {
                writer.u8(4).word(key.as_str()).named_version(*version).u16(*k).nodes(holders)
            }
            Self::Recover { key, version, node } => writer.u8(5).word(key.as_str()).named_version(*version).u16(*node),
        }
        .finish()
    }

    /// Reads what [`KeyChange::encode`] wrote; nothing else is accepted.
    ///
    /// # Errors
    /// [`DecodeError`] with the first thing that is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != FORMAT {
            return Err(DecodeError::Field("a format of another release"));
        }
        let (tag, key) = (reader.u8()?, reader.key_name()?);
        let change = match tag {
            1 => {
                let suite = reader.word()?.parse().map_err(|_| DecodeError::Field("the name of a suite"))?;
                let (delivery, k) = (reader.delivery()?, reader.u16()?);
                Self::Create { key, suite, delivery, k, holders: reader.nodes()? }
            }
            2 => Self::Rotate { key },
            3 => Self::Refresh { key, version: reader.named_version()? },
            4 => Self::Reshare { key, version: reader.named_version()?, k: reader.u16()?, holders: reader.nodes()? },
            5 => Self::Recover { key, version: reader.named_version()?, node: reader.node()? },
            _ => return Err(DecodeError::Field("the kind of change")),
        };
        reader.end(change)
    }
}

/// A change of a key, with a nonce that makes the request unique.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CeremonyRequest {
    /// 32 random bytes, drawn by the client or by the first approver; never used twice.
    pub nonce: [u8; 32],
    /// The change.
    pub change: KeyChange,
}

impl CeremonyRequest {
    /// The statement that policies decide on, approvals consent to and clients sign: format (1), the tag 18 (1), which no encoded
    /// [`KeyChange`] has, nonce, change. Because of the nonce, an approval or signature is good for one ceremony only.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Writer::new(FORMAT).u8(18).raw(&self.nonce).raw(&self.change.encode()).finish()
    }

    /// The request's name at the nodes: a hash of nonce and change.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let transcript = Transcript::new("theta/custody/request/v1").with("nonce", &self.nonce);
        transcript.with("change", &self.change.encode()).finish32()
    }
}

/// That a ceremony that runs come to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelRequest {
    /// The request with which it began.
    pub request: CeremonyRequest,
}

impl CancelRequest {
    /// The statement that policies, approvals and signatures are about: format (1), the tag 20 (1), nonce, change. Who may ask for a
    /// ceremony may ask for its end, and a request to begin is none to end.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let CeremonyRequest { nonce, change } = &self.request;
        Writer::new(FORMAT).u8(20).raw(nonce).raw(&change.encode()).finish()
    }
}

/// A change of state that a group decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// Which key.
    pub key: KeyName,
    /// Which version; `None` is the key as a whole.
    pub version: Option<Version>,
    /// The new state: [`KeyState::Disabled`], [`KeyState::Active`] (enables), [`KeyState::Retired`] or [`KeyState::Destroyed`].
    pub state: KeyState,
    /// The generation of the key that the change makes: the one after that of the last change.
    pub generation: u64,
    /// When it is destroyed, in seconds since 1970, if it is to be destroyed; until then it is disabled, and whoever may enable it takes
    /// it back. 0: at once; always 0 for other states.
    pub not_before: u64,
}

impl StateChange {
    /// The statement that policies, approvals and signatures are about: format (1), the tag 17 (1), which no change by a ceremony
    /// has, key, version (4; 0 for the key as a whole), state, generation (8), the time of a destruction (8). Because of the generation, an approved or signed
    /// change is made once at most, and not after a later change.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let writer = Writer::new(FORMAT).u8(17).word(self.key.as_str()).named_version(self.version);
        writer.word(self.state.name()).u64(self.generation).u64(self.not_before).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes() -> Vec<KeyChange> {
        let key: KeyName = "zone.example".parse().unwrap();
        vec![
            KeyChange::Create {
                key: key.clone(),
                suite: "frost-ed25519".parse().unwrap(),
                delivery: Delivery::All,
                k: 2,
                holders: vec![1, 2, 7],
            },
            KeyChange::Create {
                key: key.clone(),
                suite: "bls04-bn254".parse().unwrap(),
                delivery: Delivery::Quorum,
                k: 2,
                holders: vec![1, 2, 7],
            },
            KeyChange::Create {
                key: key.clone(),
                suite: "ecdsa-p256".parse().unwrap(),
                delivery: Delivery::DishonestMajority,
                k: 2,
                holders: vec![1, 2],
            },
            KeyChange::Create {
                key: key.clone(),
                suite: "ecdsa-p256".parse().unwrap(),
                delivery: Delivery::Passive,
                k: 2,
                holders: vec![1, 2, 3],
            },
            KeyChange::Create {
                key: key.clone(),
                suite: "ecdsa-p256".parse().unwrap(),
                delivery: Delivery::PassiveDishonestMajority,
                k: 2,
                holders: vec![1, 2],
            },
            KeyChange::Rotate { key: key.clone() },
            KeyChange::Refresh { key: key.clone(), version: None },
            KeyChange::Reshare { key: key.clone(), version: Version::new(3), k: 3, holders: vec![4, 5, 6, 65_535] },
            KeyChange::Recover { key, version: Version::new(1), node: 9 },
        ]
    }

    #[test]
    fn what_is_read_is_what_was_written() {
        for change in changes() {
            let bytes = change.encode();
            assert_eq!(KeyChange::decode(&bytes).as_ref(), Ok(&change));
            for len in 0..bytes.len() {
                assert!(KeyChange::decode(&bytes[..len]).is_err(), "{change:?} cut to {len}");
            }
            assert!(KeyChange::decode(&[&bytes[..], &[0]].concat()).is_err());
        }
    }

    /// Signatures and approvals cover these bytes.
    #[test]
    fn the_encoding_stands() {
        let expected = [
            "01010c7a6f6e652e6578616d706c650d66726f73742d65643235353139 01 00020003000100020007",
            "01010c7a6f6e652e6578616d706c650b626c7330342d626e323534 02 00020003000100020007",
            "01010c7a6f6e652e6578616d706c650a65636473612d70323536 03 0002000200010002",
            "01020c7a6f6e652e6578616d706c65",
            "01030c7a6f6e652e6578616d706c6500000000",
            "01040c7a6f6e652e6578616d706c65000000030003000400040005 0006ffff",
            "01050c7a6f6e652e6578616d706c65000000010009",
        ];
        for (change, expected) in changes().iter().zip(expected) {
            assert_eq!(hex::encode(change.encode()), expected.replace(' ', ""));
        }
    }

    #[test]
    fn a_changed_byte_is_another_change_or_none() {
        for change in changes() {
            let bytes = change.encode();
            for place in 0..bytes.len() {
                for bit in 0..8 {
                    let mut other = bytes.clone();
                    other[place] ^= 1 << bit;
                    if let Ok(read) = KeyChange::decode(&other) {
                        assert_ne!(read, change);
                        assert_eq!(read.encode(), other);
                    }
                }
            }
        }
    }

    #[test]
    fn what_nobody_may_ask_is_not_read() {
        let bytes = |hexadecimal: &str| hex::decode(hexadecimal).unwrap();
        for (wrong, why) in [
            ("", "nothing"),
            ("02020161", "another format"),
            ("01000161", "no such tag"),
            ("01060161", "no such tag"),
            ("01020141", "not a name"),
            ("010200", "no name"),
            ("010501610000000100 00", "node 0"),
            ("0104016100000001000200010000", "holder 0"),
            ("01010161015801 00020001 0001", "not the name of a suite"),
            ("0101016101780002 0001 0001", "no delivery, as releases before wrote it"),
            ("01010161017804 00020001 0001", "no such delivery"),
            ("0104016100000001 0002ffff0001", "more holders than bytes"),
        ] {
            assert!(KeyChange::decode(&bytes(&wrong.replace(' ', ""))).is_err(), "{why}");
        }
    }

    #[test]
    fn digests_tell_requests_apart() {
        let mut digests: Vec<_> = (0..3)
            .flat_map(|nonce| changes().into_iter().map(move |change| CeremonyRequest { nonce: [nonce; 32], change }))
            .map(|request| request.digest())
            .collect();
        let count = digests.len();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), count);
    }
}
