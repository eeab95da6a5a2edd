//! What can be wrong with a policy file, in words for the person who edits it.

use core::fmt;

use theta_names::OperationError;
use theta_statements::{NameError, TimeError, UnixTime, VerifyingKeyError};

use super::{MOST_ENTRIES, MOST_FILE, MOST_LIST};
use crate::pattern::KeyPatternError;
use crate::rate::{MOST_RATE, RateError};

/// Why a policy file was refused. One line: where, what is wrong, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {problem}", Line(*line))]
pub struct PolicyFileError {
    /// The file.
    pub file: String,
    /// The line, from 1, where one is to blame.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: Box<PolicyProblem>,
}

/// What is wrong with a policy file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyProblem {
    /// Too long to be one.
    #[error("the file has {0} bytes; a policy has at most {MOST_FILE}")]
    TooLarge(usize),
    /// Not TOML, or a field is missing, unknown or of another type.
    #[error("{0}")]
    Syntax(String),
    /// Of another version.
    #[error("format = {0} is not known here; this program reads format = 1")]
    Format(i64),
    /// Too many of one kind.
    #[error("there are {got} [[{what}]] tables; at most {MOST_ENTRIES} are allowed")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        got: usize,
    },
    /// Not a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// One name for two.
    #[error("two {what}s are named {name:?}; give each a name of its own")]
    DuplicateName {
        /// Of what.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A client that nobody can be.
    #[error(
        "client {0:?} has nothing to recognise it by; give it certificates, tokens or signing_keys with at least one entry"
    )]
    NoCredential(String),
    /// Not a fingerprint.
    #[error(
        "{0:?} is not a certificate fingerprint; it is the SHA-256 of the certificate's public key, written as 64 hexadecimal digits"
    )]
    Certificate(String),
    /// Not a token's hash. The text is not repeated: it may be a secret of another form.
    #[error("this is not a token's hash; write sha256: and 64 hexadecimal digits")]
    TokenHash,
    /// A token itself, anywhere in the file.
    #[error(
        "this is a token, not its hash: take it out of the file, give the client a new one and write the hash of that"
    )]
    Token,
    /// Not a public key.
    #[error(transparent)]
    Key(#[from] VerifyingKeyError),
    /// One certificate, token or key for two.
    #[error("{0} appears twice; every client and approver must have its own")]
    DuplicateCredential(String),
    /// A list without entries.
    #[error("{0} = [] is empty and would mean nothing; add an entry or take the line out")]
    Empty(&'static str),
    /// A list with too many.
    #[error("{what} has {got} entries; at most {MOST_LIST} are allowed")]
    LongList {
        /// Which.
        what: &'static str,
        /// How many.
        got: usize,
    },
    /// One entry twice.
    #[error("{entry:?} stands twice in {what}; write it once")]
    Repeated {
        /// In which list.
        what: &'static str,
        /// The entry.
        entry: String,
    },
    /// Everybody and somebody.
    #[error("\"*\" in clients means every client; write it alone or take it out")]
    NotAlone,
    /// Nobody of this name.
    #[error("no [[{what}]] is named {name:?}; there are: {known}")]
    Unknown {
        /// `client` or `approver`.
        what: &'static str,
        /// The name.
        name: String,
        /// Those that exist, shortened.
        known: String,
    },
    /// Not an effect.
    #[error("effect = {0:?} is not known; write \"allow\" or \"deny\"")]
    Effect(String),
    /// Not a pattern.
    #[error(transparent)]
    KeyPattern(#[from] KeyPatternError),
    /// Not an operation.
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// A prefix of everything.
    #[error("an empty label prefix means every label; take labels out instead")]
    EmptyLabel,
    /// Not a moment.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// A time without moments.
    #[error("from {from} to {until} is no time at all; until must be later than from")]
    Window {
        /// As given.
        from: UnixTime,
        /// As given.
        until: UnixTime,
    },
    /// Not a rate.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// Not a burst.
    #[error("burst = {0} is not between 1 and {MOST_RATE}")]
    Burst(i64),
    /// A burst of nothing.
    #[error("burst needs a rate; add for example rate = \"100/min\"")]
    BurstWithoutRate,
    /// The same in a table of limits.
    #[error("burst needs submissions; add for example submissions = \"100/s\"")]
    BurstWithoutSubmissions,
    /// Not a limit.
    #[error("{field} = {got} is not between 0 and {most}")]
    Limit {
        /// Which.
        field: &'static str,
        /// As given.
        got: i64,
        /// The most.
        most: i64,
    },
    /// A deny rule with a condition.
    #[error("a deny rule has no {0}: it refuses whatever it is about; take the line out")]
    DenyCondition(&'static str),
    /// Another word for when a decision is recorded.
    #[error(
        "record = {0:?} is neither \"first\" (on the disk before anything leaves) nor \"soon\" (a crash may lose the last records)"
    )]
    Record(String),
    /// Consents that cannot be had, or need not.
    #[error("need = {need} of {of} approvers is not possible; write a number from 1 to {of}")]
    Need {
        /// As given.
        need: i64,
        /// How many approvers the rule names.
        of: usize,
    },
    /// The name of a signing rule, which is stored.
    #[error("{0:?} has upper-case letters; signing rules are stored by their names, which have none")]
    SigningName(String),
    /// An operation that no signing rule is for.
    #[error("signing rules are for \"sign\" and \"flip-coin\", not for {0}")]
    SigningOperation(String),
    /// Not a place for a slot.
    #[error("slot = {0:?} is not known; write \"claimed\", \"message-prefix\" or \"message-sha256\"")]
    Slot(String),
    /// Not an order.
    #[error("order = {0:?} is not known; write \"any\" or \"increasing\"")]
    Order(String),
    /// No slots.
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
