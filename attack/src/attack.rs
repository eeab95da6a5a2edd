//! What an attack is, and the group that it is given.

use core::{fmt, future::Future, pin::Pin};
use std::io;

use serde::Serialize;

use crate::group::{Group, NODES, THRESHOLD};

/// Who attacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Who {
    /// Somebody who knows the addresses and has no certificate, token or key.
    Stranger,
    /// Somebody whom the policy names.
    Client,
    /// A node of the group, or somebody with a node's certificate.
    Member,
    /// Somebody who controls nodes' disks, processes, memory or power.
    Disk,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Stranger => "stranger",
            Self::Client => "client",
            Self::Member => "member",
            Self::Disk => "disk",
        })
    }
}

/// An attack.
pub(crate) struct Attack {
    /// Its name: one to three words with hyphens.
    pub(crate) name: &'static str,
    /// The promise of SECURITY.md that it tries to break.
    pub(crate) promise: &'static str,
    pub(crate) who: Who,
    /// Whether `--short` runs it.
    pub(crate) short: bool,
    /// The group that is attacked.
    pub(crate) shape: Shape,
    /// Runs the attack. The caller judges the answers of honest clients ([`crate::report::commit`]).
    pub(crate) commit: fn(&mut Field) -> Committing<'_>,
}

/// n and k of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) nodes: u16,
    pub(crate) threshold: u16,
}

impl Shape {
    /// Two of four.
    pub(crate) const USUAL: Self = Self { nodes: NODES, threshold: THRESHOLD };
    /// Two of five.
    pub(crate) const FIVE: Self = Self { nodes: 5, threshold: 2 };
}

/// An attack in progress.
pub(crate) type Committing<'a> = Pin<Box<dyn Future<Output = Result<Happened, Trouble>> + Send + 'a>>;

/// The result of an attack.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Happened {
    /// Whether the promise was kept, as far as the attack itself can tell. Unanswered honest requests break it as well.
    pub(crate) kept: bool,
    /// What happened, in words.
    pub(crate) words: String,
    pub(crate) effort: Effort,
}

/// The attacker's effort.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Effort {
    pub(crate) connections: usize,
    /// Bytes that the attacker sent, above TLS.
    pub(crate) bytes: usize,
}

/// The group under attack.
pub(crate) struct Field {
    group: Group,
    short: bool,
}

impl Field {
    pub(crate) const fn new(group: Group, short: bool) -> Self {
        Self { group, short }
    }

    pub(crate) const fn group(&self) -> &Group {
        &self.group
    }

    /// The group, for killing and restarting nodes.
    pub(crate) const fn group_mut(&mut self) -> &mut Group {
        &mut self.group
    }

    /// The size of the attack: `long`, or `short` with `--short`.
    pub(crate) fn size<T>(&self, long: T, short: T) -> T {
        if self.short { short } else { long }
    }
}

/// Why an attack could not be run. This says nothing about the promise.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Trouble(String);

impl Trouble {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self(problem.into())
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<theta_client::OpenError> for Trouble {
    fn from(error: theta_client::OpenError) -> Self {
        Self(error.to_string())
    }
}

impl From<theta_client::ClientError> for Trouble {
    fn from(error: theta_client::ClientError) -> Self {
        Self(error.to_string())
    }
}

impl From<h2::Error> for Trouble {
    fn from(error: h2::Error) -> Self {
        Self(error.to_string())
    }
}

/// Random bytes from the operating system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Trouble> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Trouble::new(error.to_string()))?;
    Ok(bytes)
}
