//! `theta-rpki statement grant` and `theta-rpki statement withdraw`.

use std::path::PathBuf;

use clap::Args;
use theta_rpki::{
    registry::Registry,
    statements::{Statement, StatementError},
};

use super::{
    super::{
        about::{AboutArgs, MOST_NUMBER},
        failure::Failure,
        files, known,
        moment::Moment,
        signer::Signer,
        tally::Tally,
        terminal::{Form, note},
    },
    report::{Report, Words},
    text::Text,
};

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
    statement: StatementArgs,
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
    statement: StatementArgs,
}

/// What a statement is about, and where it goes.
#[derive(Debug, Args)]
struct StatementArgs {
    #[command(flatten)]
    about: AboutArgs,
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

/// `theta-rpki statement grant`.
pub(super) fn grant(args: &GrantArgs) -> Result<(), Failure> {
    let from = args.statement.about.from();
    let until = args.until.unwrap_or_else(|| from.plus_days(args.days));
    write(&args.statement, from, Some(until))
}

/// `theta-rpki statement withdraw`.
pub(super) fn withdraw(args: &WithdrawArgs) -> Result<(), Failure> {
    write(&args.statement, args.statement.about.from(), None)
}

fn write(args: &StatementArgs, from: Moment, until: Option<Moment>) -> Result<(), Failure> {
    let (about, (roa, aspa)) = (&args.about, args.about.texts(until.is_some()));
    let wrong = |reason| Failure::Statement { path: about.registry.clone(), reason };
    let registry = known::registry(&about.registry)?;
    let stranger = || wrong(StatementError::Stranger(about.member.clone()));
    let member = registry.members.get(&about.member).ok_or_else(stranger)?;
    let text = Text {
        rpki: registry.name.clone(),
        member: about.member.clone(),
        number: number(args, &registry)?,
        act: if until.is_some() { "grant" } else { "withdraw" },
        from: from.0,
        until: until.map(|until| until.0),
        roa,
        aspa,
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
        signer.belongs_to(&member.keys, &about.member)?;
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
fn number(args: &StatementArgs, registry: &Registry) -> Result<u64, Failure> {
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
    let of_member = found.good.iter().filter(|(_, statement)| statement.member == args.about.member);
    let next = match of_member.map(|(_, statement)| statement.number).max() {
        Some(highest) => highest.checked_add(1).filter(|next| *next <= MOST_NUMBER),
        None => Some(1),
    };
    next.ok_or_else(|| Failure::Number(args.about.member.clone()))
}
