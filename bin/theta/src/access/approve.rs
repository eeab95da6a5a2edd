//! `theta approve`: writes one approver's approval.

use std::{
    io::{self, BufRead, IsTerminal},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use serde::Serialize;
use theta_client::ClientFile;
use theta_names::Operation;
use theta_network::group::GroupFile;
use theta_statements::{Approval, ApprovalTerms, Digest, UnixTime, Validity};

use super::approvals::nonce_line;
use super::credentials::read_signing_key;
use super::{Nonce, Subject, SubjectArgs};
use crate::{
    connect::Session,
    exit::Failure,
    files::{self, Target},
    keys::{Keyring, change::warn_of_passive, find_ceremony, shares_of},
    output::{self, Output},
    units,
};

/// Options of `theta approve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta approver new --name ann                         once: writes ann.key, prints the lines for policy.toml
  theta approve --as ann.key --group prod --operation sign --key release --message app.tar -o ann.approval
  theta approve --as ann.key --operation decapsulate --key vault --message letter.txt.theta --for 7d --yes > ann.approval
  theta approve --as ann.key --operation keys.reshare --key release --threshold 3 --holders 1,2,3,4 -o ann.approval
  theta approve --as ann.key --operation group.change --card echo/node.card -o ann.approval
  theta approve --as ann.key --operation group.change --take-back --card echo/node.card -o ann.approval     for theta group cancel
  theta approve --as ann.key --operation keys.recover --all --node 3 -o ann.approval       every share that node 3 should hold
  theta approve --as ann.key --cancel 4be1f00d -o ann.approval          that a ceremony which runs or waits come to nothing
  theta sign app.tar --key release --approval ann.approval --approval ben.approval

What is consented to is shown first: the group, the key, the operation, the SHA-256 of the message (as sha256sum prints it) and \
for how long. An approval is no secret, and says nothing about who asks: whoever has it may use it until it expires, for \
precisely what it approves. Of a ceremony that is one request, or its end, told from others by its nonce, and it is used up when the ceremony \
begins; of a change of state one generation of the key; of a message, ciphertext or coin the same answer, as often as it is asked \
for. Every node counts for itself.")]
pub(crate) struct ApproveArgs {
    /// The approver's private key: Ed25519, PEM
    #[arg(long = "as", value_name = "FILE")]
    signing_key: PathBuf,
    #[command(flatten)]
    subject: SubjectArgs,
    /// That this ceremony come to nothing: its id, the first digits of it, or the name of its key; the nodes are asked which one that is
    #[arg(long, value_name = "ID|KEY", conflicts_with_all = [
        "operation", "key", "message", "coin", "digest", "checkpoint", "suite", "threshold", "holders", "node", "card", "take_back", "nonce", "generation", "at",
    ])]
    cancel: Option<String>,
    /// The group's name, or its group file [default: as in the client file or directory]
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// For keys.recover with --node: the share of every key that this node should hold by the group's ledger, one approval each in one file
    #[arg(long, requires = "node", conflicts_with_all = ["key", "cancel"])]
    all: bool,
    /// Client file or directory, for the group's name, and to ask the nodes with
    #[arg(long, value_name = "FILE", env = "THETA_CLIENT", default_value = "theta-group/client")]
    client: PathBuf,
    /// For how long, at most 31 days
    #[arg(long = "for", value_name = "TIME", default_value = "24h", value_parser = units::parse_duration)]
    lifetime: Duration,
    /// From when on, as 2026-11-21T08:30:00Z [default: a minute ago, for clocks that differ]
    #[arg(long, value_name = "TIME")]
    from: Option<UnixTime>,
    /// Consent without being asked
    #[arg(long)]
    yes: bool,
    /// Where to write the approval [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// One approval, or with `--all` a list of them.
#[derive(Serialize)]
#[serde(untagged)]
enum Consents {
    One(Box<Consent>),
    All(Vec<Consent>),
}

#[derive(Serialize)]
struct Consent {
    group: String,
    key: Option<String>,
    operation: Operation,
    statement: Digest,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<String>,
    from: UnixTime,
    until: UnixTime,
    approver: String,
    approval: String,
}

/// How long the nodes may take to tell of their ceremonies.
const PATIENCE: Duration = Duration::from_secs(10);

/// `theta approve`.
pub(crate) fn approve(args: &ApproveArgs, output: Output) -> Result<(), Failure> {
    let key = read_signing_key(&args.signing_key)?;
    let subjects = subjects(args)?;
    let group = group_name(args)?;
    let from = args.from.unwrap_or_else(|| UnixTime(UnixTime::now().0.saturating_sub(60_000)));
    let lifetime = u64::try_from(args.lifetime.as_millis()).unwrap_or(u64::MAX);
    let validity = Validity { from, until: from.plus(lifetime) };
    if lifetime > theta_statements::MOST_APPROVAL_LIFETIME {
        return Err(Failure::Usage("--for: an approval is valid for 31 days at most".to_owned()));
    }
    let mut terms = Vec::new();
    for subject in &subjects {
        let about = subject.about.as_deref().unwrap_or_default();
        let of =
            ApprovalTerms::of(&subject.ask(&group), validity).map_err(|error| Failure::Usage(error.to_string()))?;
        show(&of, about, subject.nonce);
        warn_of_security(args, subject);
        terms.push(of);
    }
    confirm(args.yes, "Consent?")?;
    let sign = |(subject, terms): (&Subject, ApprovalTerms)| {
        let approval = Approval::sign(terms, &key);
        let terms = approval.terms();
        Consent {
            group: group.clone(),
            key: subject.key.clone(),
            operation: terms.operation,
            statement: terms.statement,
            nonce: subject.nonce.map(|nonce| nonce.to_string()),
            from: validity.from,
            until: validity.until,
            approver: key.verifying_key().to_string(),
            approval: subject.nonce.map(nonce_line).unwrap_or_default() + &approval.to_text(),
        }
    };
    let mut signed: Vec<Consent> = subjects.iter().zip(terms).map(sign).collect();
    let text: String = signed.iter().map(|consent| consent.approval.as_str()).collect();
    let consents = match signed.pop() {
        Some(one) if !args.all => Consents::One(Box::new(one)),
        last => Consents::All(signed.into_iter().chain(last).collect()),
    };
    if let Some(path) = &args.output {
        let target = Target::choose(Some(path), None)?;
        target.check_json(output.json())?;
        target.write(text.as_bytes(), false)?;
        return output.remark(&consents, &format!("wrote the approval to {}", target.name().display()));
    }
    output.result(&consents, |out| write!(out, "{text}"))
}

/// Says what whoever made the key was told, where others may hold it next: a request of this kind does not name the key's security. It is in
/// the ledger, as the client has it or the nodes tell at once.
fn warn_of_security(args: &ApproveArgs, subject: &Subject) {
    let passes_on =
        matches!(subject.operation, Operation::KeysRotate | Operation::KeysReshare) && args.cancel.is_none();
    let Some(key) = subject.key.as_deref().filter(|_| passes_on) else { return };
    let delivery = |keyring: &Keyring| keyring.named(key).ok().and_then(|known| known.delivery);
    let learned = || {
        let session = Session::open(&args.client, PATIENCE).ok()?;
        session.renew();
        delivery(&session.keyring())
    };
    match delivery(&Keyring::new(&args.client)).or_else(learned) {
        Some(delivery) => warn_of_passive(key, delivery),
        None => output::diagnostic(
            "note",
            &format!(
                "this client does not know the key {key}, and so not whether it has passive security, with which a holder may learn the key: see \
                 theta keys show {key}"
            ),
        ),
    }
}

/// What is consented to: one thing, or the recovery of each share that a node should hold.
fn subjects(args: &ApproveArgs) -> Result<Vec<Subject>, Failure> {
    let session = || {
        files::check_client(&args.client)?;
        Session::open(&args.client, PATIENCE)
    };
    if args.all {
        let subjects = args.subject.recoveries(&|node| shares_of(&session()?, node))?;
        if subjects.is_empty() {
            return Err(Failure::Failed("by the group's ledger that node holds no share".to_owned()));
        }
        return Ok(subjects);
    }
    let subject = match &args.cancel {
        Some(what) => Subject::cancel(find_ceremony(&session()?, what)?),
        None => args.subject.read(|| group_file(args))?,
    };
    if subject.about.is_none() {
        let operation = subject.operation;
        return Err(Failure::Usage(format!(
            "say what {operation} is about: --message FILE, --coin NAME, --digest for sign-digest, --checkpoint for audit.prune, --card or --node for group.change, or --key with what changes, and --generation for a \
             change of state; an approval is for one thing alone"
        )));
    }
    Ok(vec![subject])
}

/// The group's name, as given or from the group file.
fn group_name(args: &ApproveArgs) -> Result<String, Failure> {
    match &args.group {
        Some(name) if !Path::new(name).is_file() => Ok(name.clone()),
        _ => Ok(group_file(args)?.name().to_owned()),
    }
}

/// The group file that was given, or that of the client.
fn group_file(args: &ApproveArgs) -> Result<GroupFile, Failure> {
    let file = match &args.group {
        Some(file) if Path::new(file).is_file() => PathBuf::from(file),
        // A client file has its group in it.
        _ if args.client.is_file() => return Ok(ClientFile::load(&args.client)?.group),
        _ => args.client.join("group.toml"),
    };
    GroupFile::load(&file)
        .map_err(|error| Failure::Usage(format!("an approval is for one group: name it with --group ({error})")))
}

fn show(terms: &ApprovalTerms, about: &str, nonce: Option<Nonce>) {
    output::note("You consent to:");
    output::note(format_args!("  group      {}", terms.group));
    output::note(format_args!("  operation  {}", terms.operation));
    if let Some(key) = &terms.key {
        output::note(format_args!("  key        {key}"));
    }
    output::note(format_args!("  about      {about}"));
    if let Some(nonce) = nonce {
        output::note(format_args!("  nonce      {nonce}: other approvers of this request give --nonce with it"));
    }
    output::note(format_args!("  sha256     {}", terms.statement));
    output::note(format_args!("  from       {}", terms.validity.from));
    output::note(format_args!("  until      {}", terms.validity.until));
}

/// Asks a person for confirmation; a program has to pass `--yes`.
pub(crate) fn confirm(yes: bool, question: &str) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage("nobody is there to consent: add --yes if this is meant".to_owned()));
    }
    output::note(format_args!("{question} Type yes:"));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| Failure::reading(Path::new("standard input"), &error))?;
    if answer.trim() == "yes" { Ok(()) } else { Err(Failure::Failed("nothing was signed".to_owned())) }
}
