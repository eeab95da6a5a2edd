//! With what a ledger begins.

use core::fmt;

use theta_agreement::Member;
use theta_groups::Transcript;
use theta_names::NodeId;

use crate::founding::{Card, Founding};

/// What stands for a ledger in all that is signed in it: the digest of its genesis. Who has it can check the whole history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LedgerId([u8; 32]);

impl LedgerId {
    /// The id of these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for LedgerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The members of a group when its ledger began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Genesis {
    name: String,
    k: u16,
    members: Vec<Member>,
    founding: Option<Founding>,
}

/// Why a list of members is no genesis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenesisError {
    /// A node that is listed twice.
    #[error("node {0} is listed twice")]
    Twice(u16),
    /// Two nodes with one identity.
    #[error("nodes {0} and {1} have the same identity")]
    SameIdentity(u16, u16),
    /// A threshold that a group of so many cannot have.
    #[error("the group's word cannot take {k} of {n} nodes: it takes 1 to {n}")]
    Threshold {
        /// How many it is to take.
        k: u16,
        /// How many nodes there are.
        n: usize,
    },
    /// A key that is none.
    #[error("the identity of node {0} is no key")]
    Identity(u16),
    /// A file that says something else than the founding in it.
    #[error(
        "the group was founded as {name} with {k} nodes to act: what is here says something else, and that cannot change"
    )]
    Founding {
        /// The founding's name.
        name: String,
        /// The founding's k.
        k: u16,
    },
    /// A name that is too long.
    #[error("the name of a group is 1 to 255 bytes long")]
    Name,
}

impl Genesis {
    /// A group of these members, of which k - 1 may do what they like.
    ///
    /// # Errors
    /// [`GenesisError`].
    pub fn new(name: &str, k: u16, mut members: Vec<Member>) -> Result<Self, GenesisError> {
        members.sort_by_key(Member::node);
        if name.is_empty() || name.len() > 255 {
            return Err(GenesisError::Name);
        }
        if k == 0 || usize::from(k) > members.len() {
            return Err(GenesisError::Threshold { k, n: members.len() });
        }
        for (at, one) in members.iter().enumerate() {
            for other in members.iter().skip(at + 1) {
                if one.node() == other.node() {
                    return Err(GenesisError::Twice(one.node().get()));
                }
                if one.verifying_key() == other.verifying_key() {
                    return Err(GenesisError::SameIdentity(one.node().get(), other.node().get()));
                }
            }
        }
        Ok(Self { name: name.to_owned(), k, members, founding: None })
    }

    /// A group that was founded with cards: the ledger's id is the founding's fingerprint, and members can change.
    ///
    /// # Errors
    /// [`GenesisError::Identity`]: the key of a card is none, which whoever read the card has excluded.
    pub fn of(founding: &Founding) -> Result<Self, GenesisError> {
        let member = |(node, card): (NodeId, &Card)| {
            Member::of(node, &card.content().ceremony_key).map_err(|_| GenesisError::Identity(node.get()))
        };
        let members = founding.numbered().map(member).collect::<Result<_, _>>()?;
        let genesis = Self::new(founding.name(), founding.threshold(), members)?;
        Ok(Self { founding: Some(founding.clone()), ..genesis })
    }

    /// A group whose file lists these members, and has this founding: it begins with the founding, whoever the members are by now. Without
    /// one it begins with the list.
    ///
    /// # Errors
    /// [`GenesisError`].
    pub fn of_file(
        name: &str,
        k: u16,
        members: Vec<Member>,
        founding: Option<&Founding>,
    ) -> Result<Self, GenesisError> {
        match founding.map(Self::of).transpose()? {
            Some(founded) if (founded.name.as_str(), founded.k) == (name, k) => Ok(founded),
            // Another beginning would be another ledger, in which a member would not know what it has said.
            Some(Self { name, k, .. }) => Err(GenesisError::Founding { name, k }),
            None => Self::new(name, k, members),
        }
    }

    /// With which cards the group was founded, if it was.
    #[must_use]
    pub const fn founding(&self) -> Option<&Founding> {
        self.founding.as_ref()
    }

    /// The group's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many nodes it takes so that one of them is honest.
    #[must_use]
    pub const fn k(&self) -> u16 {
        self.k
    }

    /// The members by rising number.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The ledger that begins with it.
    #[must_use]
    pub fn id(&self) -> LedgerId {
        if let Some(founding) = &self.founding {
            return LedgerId(*founding.fingerprint().as_bytes());
        }
        let mut transcript = Transcript::new("theta/ledger/genesis/v1")
            .with("name", self.name.as_bytes())
            .with("k", &self.k.to_be_bytes());
        for member in &self.members {
            transcript.append("member", &member.encode());
        }
        LedgerId(transcript.finish32())
    }
}
