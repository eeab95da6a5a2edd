//! The policy file: TOML, read strictly. Every error names the line and what to write instead.

mod check;
mod error;
mod limits;
mod rules;
mod text;

pub use error::{PolicyFileError, PolicyProblem};

use theta_statements::Digest;

use crate::Policy;

/// The longest policy file, in bytes.
pub const MOST_FILE: usize = 1 << 20;
/// How many clients a file may have at most, and how many approvers, rules and signing rules.
pub const MOST_ENTRIES: usize = 4_096;
/// How many entries a list of a rule or client may have at most.
pub const MOST_LIST: usize = 1_024;

impl Policy {
    /// Reads and checks the text of a policy file. `file` is a name for errors; nothing is opened.
    ///
    /// ```
    /// # use theta_policy::Policy;
    /// let error = Policy::parse("format = 1\n[[rule]]\nname = \"all\"\n", "policy.toml").unwrap_err();
    /// assert_eq!(error.to_string(), "policy.toml:2: missing field `effect`");
    /// ```
    ///
    /// # Errors
    /// [`PolicyFileError`]: one line that says where, what is wrong, and what would be right.
    pub fn parse(text: &str, file: &str) -> Result<Self, PolicyFileError> {
        check::parse(text, Digest::of(text.as_bytes())).map_err(|(span, problem)| PolicyFileError {
            file: file.to_owned(),
            line: span.map(|span| error::line_of(text, span.start)),
            problem: Box::new(problem),
        })
    }
}
