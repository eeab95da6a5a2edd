//! Approvals that go with a request, in files.

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use theta_statements::{Approval, MOST_APPROVALS};

use super::nonce::Nonce;
use crate::{exit::Failure, files};

/// The approvals that go with a request.
#[derive(Debug, Default, Args)]
pub(crate) struct ApprovalFiles {
    /// Approvals, as theta approve writes them; may be given more than once, and a file may hold several
    #[arg(long = "approval", value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// The contents of files with approvals.
#[derive(Default)]
pub(crate) struct Approved {
    pub(crate) approvals: Vec<Approval>,
    /// The nonce of the approved ceremony, if the files name one.
    pub(crate) nonce: Option<Nonce>,
}

impl ApprovalFiles {
    /// Whether any file was named.
    pub(crate) fn is_given(&self) -> bool {
        !self.files.is_empty()
    }

    /// Reads all files, each once because it may be a pipe.
    pub(crate) fn read(&self) -> Result<Approved, Failure> {
        let mut approved = Approved::default();
        for file in &self.files {
            approved
                .add(&files::read_text(file)?)
                .map_err(|problem| Failure::Usage(format!("{}: {problem}", file.display())))?;
        }
        let mut of_each: BTreeMap<[u8; 32], usize> = BTreeMap::new();
        for approval in &approved.approvals {
            *of_each.entry(approval.terms().statement.0).or_default() += 1;
        }
        if let Some(got) = of_each.into_values().find(|count| *count > MOST_APPROVALS) {
            return Err(Failure::Usage(format!(
                "--approval: there are {got}, and a request may carry {MOST_APPROVALS}"
            )));
        }
        Ok(approved)
    }
}

impl Approved {
    /// Takes the contents of a file. The error says what is wrong with them.
    fn add(&mut self, text: &str) -> Result<(), String> {
        let mut approvals_alone = String::with_capacity(text.len());
        for line in text.lines() {
            let Some(written) = line.strip_prefix(NONCE_LINE) else {
                approvals_alone.extend([line, "\n"]);
                continue;
            };
            let nonce: Nonce = written.trim().parse()?;
            if self.nonce.is_some_and(|other| other != nonce) {
                return Err(
                    "it approves another request than the file before, with another nonce: all have to approve one \
                            (theta approve --nonce)"
                        .to_owned(),
                );
            }
            self.nonce = Some(nonce);
        }
        let read = Approval::all_from_text(&approvals_alone).map_err(|error| error.to_string())?;
        if read.is_empty() {
            return Err("there is no approval in it; theta approve writes them".to_owned());
        }
        self.approvals.extend(read);
        Ok(())
    }
}

/// The prefix of the nonce in a file with the approval of a ceremony.
const NONCE_LINE: &str = "Nonce: ";

/// The line that says which request of a ceremony is approved.
pub(crate) fn nonce_line(nonce: Nonce) -> String {
    format!("{NONCE_LINE}{nonce}\n")
}
