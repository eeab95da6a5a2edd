//! `theta-rpki statement grant` and `theta-rpki statement withdraw`.

use std::path::PathBuf;

use clap::Args;
use theta_rpki::{
    attestation::Prefix,
    registry::Registry,
    statements::{Statement, StatementError},
};

use super::{
    super::{
        failure::Failure,
        files, known,
        moment::Moment,
        signer::Signer,
        tally::Tally,
        terminal::{Form, note},
    },
    report::{Report, Words},
    text::{AspaText, RoaText, Text},
};

/// The highest number that a file can have.
const MOST_NUMBER: u64 = 0x7fff_ffff_ffff_ffff;

/// Options of `theta-rpki statement grant`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta-rpki statement grant --registry registry.toml --member acme --roa AS64496 --prefix 192.0.2.0/24-26 --key ann.key --out statements/acme/7.toml
  theta-rpki statement grant --registry registry.toml --member acme --aspa AS64496 --provider AS64497 --provider AS64498 --out statements/acme/8.toml

192.0.2.0/24-26 permits parts of up to 26 bits to be announced, too. An ASPA names all providers: a later one takes its place. Providers
of AS0 alone mean that there are none.")]
pub(crate) struct GrantArgs {
    #[command(flatten)]
    about: AboutArgs,
    /// When the grant ends, as 2026-11-21T08:30:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "days")]
    until: Option<Moment>,
    /// After how many days it ends
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
}

/// Options of `theta-rpki statement withdraw`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta-rpki statement withdraw --registry registry.toml --member acme --roa AS64496 --prefix 192.0.2.0/24-26 --statements statements/ --key ann.key --out statements/acme/9.toml
  theta-rpki statement withdraw --registry registry.toml --member acme --aspa AS64496 --out statements/acme/10.toml

A ROA is withdrawn with all its prefixes, as it was granted; an ASPA by its customer, whatever its providers.")]
pub(crate) struct WithdrawArgs {
    #[command(flatten)]
    about: AboutArgs,
}

/// What a statement is about, and where it goes.
#[derive(Debug, Args)]
struct AboutArgs {
    /// The registry's data, or a copy of them: who holds what, and whose keys sign
    #[arg(long, value_name = "FILE")]
    registry: PathBuf,
    /// The member's handle in the registry's data
    #[arg(long, value_name = "HANDLE")]
    member: String,
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
    /// Its number: of statements about the same the one with the highest decides [default: one above the highest in --statements, or else the time]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(..=MOST_NUMBER))]
    number: Option<u64>,
    /// A folder of the statements that there are, with a folder for each member, by its handle
    #[arg(long, value_name = "FOLDER")]
    statements: Vec<PathBuf>,
    /// The private key that signs at once
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Where to write the statement
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    form: Form,
}

/// The number of a network, with AS before it or without.
fn as_number(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix("AS").or_else(|| text.strip_prefix("as")).unwrap_or(text);
    digits.parse().map_err(|_| format!("{text} is no number of a network such as AS64496"))
}

/// `theta-rpki statement grant`.
pub(super) fn grant(args: &GrantArgs) -> Result<(), Failure> {
    let from = args.about.from.unwrap_or_else(Moment::now);
    let until = args.until.unwrap_or_else(|| from.plus_days(args.days));
    write(&args.about, from, Some(until), args.about.provider.clone())
}

/// `theta-rpki statement withdraw`.
pub(super) fn withdraw(args: &WithdrawArgs) -> Result<(), Failure> {
    let from = args.about.from.unwrap_or_else(Moment::now);
    // A file needs some providers, which say nothing in a withdrawal.
    let providers = if args.about.provider.is_empty() { vec![0] } else { args.about.provider.clone() };
    write(&args.about, from, None, providers)
}

fn write(args: &AboutArgs, from: Moment, until: Option<Moment>, providers: Vec<u32>) -> Result<(), Failure> {
    let wrong = |reason| Failure::Statement { path: args.registry.clone(), reason };
    let registry = known::registry(&args.registry)?;
    let stranger = || wrong(StatementError::Stranger(args.member.clone()));
    let member = registry.members.get(&args.member).ok_or_else(stranger)?;
    let text = Text {
        rpki: registry.name.clone(),
        member: args.member.clone(),
        number: number(args, &registry)?,
        act: if until.is_some() { "grant" } else { "withdraw" },
        from: from.0,
        until: until.map(|until| until.0),
        roa: args.roa.map(|asn| RoaText { asn, prefixes: args.prefix.iter().map(Prefix::to_string).collect() }),
        aspa: args.aspa.map(|customer| AspaText { customer, providers }),
    };
    let mut text = text.to_toml()?;
    let parse =
        |text: &str| Statement::parse(text).map_err(|reason| Failure::Statement { path: args.out.clone(), reason });
    // What is signed is what others will read.
    let (statement, _) = parse(&text)?;
    known::check_statement(&text, &args.out, &registry)?;
    let bytes = statement.signed_bytes();
    if let Some(key) = &args.key {
        let signer = Signer::open(key)?;
        signer.belongs_to(&member.keys, &args.member)?;
        text = signer.append(&text, &bytes);
    }
    let (statement, signatures) = parse(&text)?;
    files::write_new(&args.out, text.as_bytes(), files::PUBLIC)?;
    note(format_args!("wrote {}", args.out.display()));
    let report = Report::new(&args.out, &statement, Some(Tally::of(&member.keys, &bytes, &signatures)));
    args.form.answer(&report, &report.words(Words(&statement)))
}

/// The number that was given, or one above those of the member's statements that there are, or, without a look at them, the first one of this
/// second.
fn number(args: &AboutArgs, registry: &Registry) -> Result<u64, Failure> {
    if let Some(number) = args.number {
        return Ok(number);
    }
    if args.statements.is_empty() {
        return Ok(Statement::first_number(Moment::now().0));
    }
    // Those that are not signed by enough yet have taken their numbers, too.
    let found =
        known::statements(&args.statements, registry, |text| Statement::parse(text).map(|(statement, _)| statement))?;
    for wrong in &found.wrong {
        note(format_args!("{}: {}; whatever number it has is not known", wrong.file, wrong.reason));
    }
    let of_member = found.good.iter().filter(|(_, statement)| statement.member == args.member);
    let next = match of_member.map(|(_, statement)| statement.number).max() {
        Some(highest) => highest.checked_add(1).filter(|next| *next <= MOST_NUMBER),
        None => Some(1),
    };
    next.ok_or_else(|| Failure::Number(args.member.clone()))
}
