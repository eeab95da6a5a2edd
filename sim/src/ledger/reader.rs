//! A client that follows the ledger, and trusts nobody but the founding members.

use theta_ledger::{CertifiedEntry, Digest, Genesis, LedgerError, LedgerState};

/// A client of the ledger. As `theta-client` it takes entry after entry from whatever node it asked, by what [`LedgerState::advance`] says
/// and nothing else.
pub(crate) struct Reader {
    state: LedgerState,
    /// A deliberate bug: it looks at what entries are about, and not at their votes.
    credulous: bool,
}

/// What a client took from one node's answer.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// The heights and digests of the entries that it believed.
    pub(crate) believed: Vec<(u64, Digest)>,
    /// Whether something in the answer was false.
    pub(crate) refused: bool,
}

impl Reader {
    pub(crate) fn new(genesis: &Genesis, credulous: bool) -> Self {
        Self { state: LedgerState::new(genesis), credulous }
    }

    pub(crate) const fn state(&self) -> &LedgerState {
        &self.state
    }

    /// Takes what a node answered to the question for entries after the client's last.
    pub(crate) fn takes(&mut self, answer: &[Vec<u8>]) -> Served {
        let mut served = Served::default();
        for bytes in answer {
            let taken = match CertifiedEntry::decode(bytes) {
                Ok(certified) if self.credulous => self.state.restore(&certified.entry),
                Ok(certified) => self.state.advance(&certified),
                Err(_) => {
                    served.refused = true;
                    break;
                }
            };
            match taken {
                Ok(()) => served.believed.push((self.state.height(), *self.state.head())),
                // What is shown again is no lie.
                Err(LedgerError::Height { expected, got }) if got < expected => {}
                Err(_) => {
                    served.refused = true;
                    break;
                }
            }
        }
        served
    }
}
