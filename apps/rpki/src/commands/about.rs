//! What a statement is about, as people say it: a member's, or one that operators sign in a member's place.

use std::path::PathBuf;

use clap::Args;
use theta_rpki::attestation::Prefix;

use super::{
    moment::Moment,
    statement::{AspaText, RoaText},
};

/// The highest number that a file can have.
pub(super) const MOST_NUMBER: u64 = 0x7fff_ffff_ffff_ffff;

/// What a statement is about.
#[derive(Debug, Args)]
pub(super) struct AboutArgs {
    /// The registry's data, or a copy of them: who holds what, and whose keys sign
    #[arg(long, value_name = "FILE")]
    pub(super) registry: PathBuf,
    /// The member's handle in the registry's data
    #[arg(long, value_name = "HANDLE")]
    pub(super) member: String,
    /// About a ROA: the network that may announce the prefixes
    #[arg(
        long, value_name = "AS", value_parser = as_number, requires = "prefix", required_unless_present = "aspa",
        conflicts_with = "aspa"
    )]
    roa: Option<u32>,
    /// A prefix that it may announce, with the longest length of parts that it may, as 192.0.2.0/24-26
    #[arg(long, value_name = "PREFIX", num_args = 1.., requires = "roa", conflicts_with = "aspa")]
    prefix: Vec<Prefix>,
    /// About an ASPA: the network that has these providers
    #[arg(long, value_name = "AS", value_parser = as_number)]
    aspa: Option<u32>,
    /// One of its providers
    #[arg(long, value_name = "AS", value_parser = as_number, num_args = 1.., requires = "aspa", conflicts_with = "roa")]
    provider: Vec<u32>,
    /// From when on it counts [default: now]
    #[arg(long, value_name = "TIME")]
    from: Option<Moment>,
}

/// The number of a network, with AS before it or without.
fn as_number(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix("AS").or_else(|| text.strip_prefix("as")).unwrap_or(text);
    digits.parse().map_err(|_| format!("{text} is no number of a network such as AS64496"))
}

impl AboutArgs {
    /// From when on it counts.
    pub(super) fn from(&self) -> Moment {
        self.from.unwrap_or_else(Moment::now)
    }

    /// What is granted, or withdrawn.
    pub(super) fn texts(&self, is_grant: bool) -> (Option<RoaText>, Option<AspaText>) {
        // A file needs some providers, which say nothing in a withdrawal.
        let providers = if self.provider.is_empty() && !is_grant { vec![0] } else { self.provider.clone() };
        let prefixes = || self.prefix.iter().map(Prefix::to_string).collect();
        let roa = self.roa.map(|asn| RoaText { asn, prefixes: prefixes() });
        (roa, self.aspa.map(|customer| AspaText { customer, providers }))
    }
}
