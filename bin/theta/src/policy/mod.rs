//! `theta policy`: checks and explains policy files, without a node.

mod explain;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use theta_network::group::GroupFile;
use theta_policy::{Policy, SlotQuorum};
use theta_statements::Digest;

use crate::{
    exit::Failure,
    files::{Source, parent},
    output::{BAD, GOOD, Output},
};

/// See [`crate::cli`].
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Check policy files, and whether they are the same
    Check(CheckArgs),
    /// Say how a policy would decide about a request, and what each rule says to it
    Explain(Box<explain::ExplainArgs>),
}

/// Options of `theta policy check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta policy check theta-group/node-1/policy.toml
  theta policy check theta-group/node-*/policy.toml     every node decides by its own copy: are they the same?

Where a policy has signing rules and a group.toml lies beside it, it says when requests for slots stop because nodes are away.
Exit code 0 if all files are policies, 2 if one is not: the message names the line and what to write instead.
A running node takes a changed file by itself within a second or two; one with a mistake leaves the old policy in force.")]
pub(crate) struct CheckArgs {
    /// Policy files
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Checked {
    file: PathBuf,
    digest: Digest,
    rules: Vec<String>,
    signing_rules: Vec<String>,
    /// When requests for slots stop being served, if few absent nodes suffice for that.
    slots: Option<String>,
}

#[derive(Serialize)]
struct Verdict {
    same: bool,
    files: Vec<Checked>,
}

impl PolicyCommand {
    /// Runs the command.
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Self::Check(args) => check(&args, output),
            Self::Explain(args) => explain::explain(&args, output),
        }
    }
}

/// Reads a policy file.
pub(crate) fn read(path: &Path) -> Result<Policy, Failure> {
    let source = Source::open(path)?;
    let name = source.name.display().to_string();
    let bytes = source.read_all(theta_policy::MOST_FILE, "this is not a policy")?;
    let text = String::from_utf8(bytes).map_err(|_| Failure::Usage(format!("{name} is not a text file")))?;
    let policy = Policy::parse(&text, &name).map_err(|error| Failure::Usage(error.to_string()))?;
    if let Some(outdated) = policy.outdated_tokens() {
        crate::output::diagnostic("warning", &format!("{name}: {outdated}"));
    }
    Ok(policy)
}

fn check(args: &CheckArgs, output: Output) -> Result<(), Failure> {
    let names =
        |names: &mut dyn Iterator<Item = &theta_statements::Name>| names.map(ToString::to_string).collect::<Vec<_>>();
    let checked = args.files.iter().map(|file| {
        let policy = read(file)?;
        let (rules, signing_rules) = (names(&mut policy.rules()), names(&mut policy.signing_rules()));
        let slots = slots(file, &signing_rules);
        Ok(Checked { file: file.clone(), digest: policy.digest(), rules, signing_rules, slots })
    });
    let files = checked.collect::<Result<Vec<_>, Failure>>()?;
    let same = files.iter().zip(files.iter().skip(1)).all(|(one, next)| one.digest == next.digest);
    let verdict = Verdict { same, files };
    output.result(&verdict, |out| {
        for Checked { file, digest, rules, signing_rules, slots } in &verdict.files {
            let file = file.display();
            writeln!(
                out,
                "{GOOD}ok{GOOD:#} {file}: {}, {}",
                count(rules, "rule"),
                count(signing_rules, "signing rule")
            )?;
            writeln!(out, "   sha256 {digest}")?;
            if let Some(slots) = slots {
                writeln!(out, "   {BAD}{slots}{BAD:#}")?;
            }
            if rules.is_empty() {
                writeln!(out, "   {BAD}it allows nothing{BAD:#}: add an [[rule]]")?;
            }
        }
        match verdict.files.len() {
            1 => Ok(()),
            many if verdict.same => writeln!(out, "all {many} are the same"),
            _ => {
                writeln!(out, "{BAD}they differ{BAD:#}: nodes that decide differently may refuse what the others allow")
            }
        }
    })
}

/// How many absent nodes stop requests for slots, with the group file beside a policy, for keys whose k is not above the
/// group's.
fn slots(policy: &Path, signing_rules: &[String]) -> Option<String> {
    let group = GroupFile::load(&parent(policy).join("group.toml")).ok().filter(|_| !signing_rules.is_empty())?;
    let n = u16::try_from(group.nodes().len()).unwrap_or(u16::MAX);
    SlotQuorum { n, t: group.threshold().saturating_sub(1) }.warning()
}

fn count(names: &[String], what: &str) -> String {
    match names.len() {
        1 => format!("1 {what}"),
        many => format!("{many} {what}s"),
    }
}
