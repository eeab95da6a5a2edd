//! Errors of policy files, in words for the file's editor.

use core::fmt;

use theta_names::OperationError;
use theta_statements::{NameError, TimeError, UnixTime, VerifyingKeyError};

use super::{MOST_ENTRIES, MOST_FILE, MOST_LIST};
use crate::agent::MOST_AGENT_TIME;
use crate::pattern::KeyPatternError;
use crate::rate::{MOST_RATE, RateError};

/// Why a policy file was refused: one line that says where, what is wrong, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {problem}", Line(*line))]
pub struct PolicyFileError {
    /// The file's name.
    pub file: String,
    /// The line, from 1, if the problem is in one.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: Box<PolicyProblem>,
}

/// A mistake in a policy file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyProblem {
    /// The file is too long.
    #[error("the file has {0} bytes; a policy has at most {MOST_FILE}")]
    TooLarge(usize),
    /// The text is not TOML, or a field is missing, unknown or of another type.
    #[error("{0}")]
    Syntax(String),
    /// The format is of another release.
    #[error("format = {0} is not known here; this program reads format = 1")]
    Format(i64),
    /// There are too many tables of one kind.
    #[error("there are {got} [[{what}]] tables; at most {MOST_ENTRIES} are allowed")]
    TooMany {
        /// The kind of table.
        what: &'static str,
        /// How many there are.
        got: usize,
    },
    /// The text is not a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Two tables of one kind have the same name.
    #[error("two {what}s are named {name:?}; give each a name of its own")]
    DuplicateName {
        /// The kind of table.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A client has no credential.
    #[error(
        "client {0:?} has nothing to recognise it by; give it certificates, tokens or signing_keys with at least one entry"
    )]
    NoCredential(String),
    /// The text is not a certificate's fingerprint.
    #[error(
        "{0:?} is not a certificate fingerprint; it is the SHA-256 of the certificate's public key, written as 64 hexadecimal digits"
    )]
    Certificate(String),
    /// The text is not a token's key. It is not repeated, because it may be a secret of another form.
    #[error(
        "this is not the key of a token; write ed25519: and 64 hexadecimal digits, as theta token line prints them"
    )]
    TokenKey,
    /// A token itself stands somewhere in the file.
    #[error(
        "this is a token, not its key: take it out of the file, give the client a new one (theta token new) and write the key of that"
    )]
    Token,
    /// The text is not a public key.
    #[error(transparent)]
    Key(#[from] VerifyingKeyError),
    /// Two clients or approvers have the same certificate, token or key.
    #[error("{0} appears twice; every client and approver must have its own")]
    DuplicateCredential(String),
    /// A list is empty.
    #[error("{0} = [] is empty and would mean nothing; add an entry or take the line out")]
    Empty(&'static str),
    /// A list has too many entries.
    #[error("{what} has {got} entries; at most {MOST_LIST} are allowed")]
    LongList {
        /// The list's field.
        what: &'static str,
        /// How many entries it has.
        got: usize,
    },
    /// A list has an entry twice.
    #[error("{entry:?} stands twice in {what}; write it once")]
    Repeated {
        /// The list's field.
        what: &'static str,
        /// The entry.
        entry: String,
    },
    /// `clients` has `*` and other entries.
    #[error("\"*\" in clients means every client; write it alone or take it out")]
    NotAlone,
    /// No client or approver has this name.
    #[error("no [[{what}]] is named {name:?}; there are: {known}")]
    Unknown {
        /// `client` or `approver`.
        what: &'static str,
        /// The name.
        name: String,
        /// The names that exist, at most eight of them.
        known: String,
    },
    /// The text is not the path of a socket.
    #[error("socket = {0:?} is not the path of an agent's socket; write an absolute path of at most 107 bytes")]
    Socket(String),
    /// The number is no time for an agent.
    #[error("timeout_ms = {0} is not between 1 and {most}", most = MOST_AGENT_TIME.as_millis())]
    AgentTime(i64),
    /// A rule with an agent is about an operation about which agents are not asked.
    #[error(
        "agents are not asked about {0}; a rule with an agent is about sign, sign-digest, decrypt, decapsulate or flip-coin, each by its name"
    )]
    AgentOperation(String),
    /// The text is not an effect.
    #[error("effect = {0:?} is not known; write \"allow\" or \"deny\"")]
    Effect(String),
    /// The text is not a pattern of key names.
    #[error(transparent)]
    KeyPattern(#[from] KeyPatternError),
    /// The text is not an operation.
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// A prefix of labels is empty, and would match every label.
    #[error("an empty label prefix means every label; take labels out instead")]
    EmptyLabel,
    /// The text is not a point in time.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// The time from `from` to `until` is empty.
    #[error("from {from} to {until} is no time at all; until must be later than from")]
    Window {
        /// As given.
        from: UnixTime,
        /// As given.
        until: UnixTime,
    },
    /// The text is not a rate.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// The number is not a burst.
    #[error("burst = {0} is not between 1 and {MOST_RATE}")]
    Burst(i64),
    /// A rule has a burst and no rate.
    #[error("burst needs a rate; add for example rate = \"100/min\"")]
    BurstWithoutRate,
    /// A table of limits has a burst and no submissions.
    #[error("burst needs submissions; add for example submissions = \"100/s\"")]
    BurstWithoutSubmissions,
    /// A limit is out of range.
    #[error("{field} = {got} is not between 0 and {most}")]
    Limit {
        /// The limit's field.
        field: &'static str,
        /// As given.
        got: i64,
        /// The most that is allowed.
        most: i64,
    },
    /// A deny rule has a condition.
    #[error("a deny rule has no {0}: it refuses whatever it is about; take the line out")]
    DenyCondition(&'static str),
    /// The text does not say when a decision is recorded.
    #[error(
        "record = {0:?} is neither \"first\" (on the disk before anything leaves) nor \"soon\" (a crash may lose the last records)"
    )]
    Record(String),
    /// The number of approvals is 0, or more than there are approvers.
    #[error("need = {need} of {of} approvers is not possible; write a number from 1 to {of}")]
    Need {
        /// As given.
        need: i64,
        /// How many approvers the rule names.
        of: usize,
    },
    /// A signing rule's name, which the store keeps, has upper-case letters.
    #[error("{0:?} has upper-case letters; signing rules are stored by their names, which have none")]
    SigningName(String),
    /// Signing rules cannot be for this operation.
    #[error("signing rules are for \"sign\" and \"flip-coin\", not for {0}")]
    SigningOperation(String),
    /// The text does not say where the slot is found.
    #[error("slot = {0:?} is not known; write \"claimed\", \"message-prefix\" or \"message-sha256\"")]
    Slot(String),
    /// The text is not an order of slots.
    #[error("order = {0:?} is not known; write \"any\" or \"increasing\"")]
    Order(String),
    /// The text does not say what happens when several messages are asked for one slot.
    #[error("race = {0:?} is not known; write \"void\" or \"ordered\"")]
    Race(String),
    /// The window of slots is empty.
    #[error("first = {first} to last = {last} has no slots; both are at least 0, and last is not below first")]
    Slots {
        /// As given.
        first: i64,
        /// As given.
        last: i64,
    },
}

struct Line(Option<usize>);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// The line, from 1, of a byte offset.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count().saturating_add(1)
}
