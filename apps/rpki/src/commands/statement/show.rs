//! `theta-rpki statement show`.

use std::path::PathBuf;

use clap::Args;
use theta_rpki::{
    attestation::Attestation,
    registry::Registry,
    statements::{Authorised, Statement},
};

use super::{
    super::{failure::Failure, files, known, moment::Moment, tally::Tally, terminal::Form},
    report::{Report, Words},
};

/// Options of `theta-rpki statement show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  theta-rpki statement show --registry registry.toml --statements statements/ 7.toml

Without --statements it does not know whether another statement decides in the place of this one.")]
pub(crate) struct ShowArgs {
    /// The registry's data
    #[arg(long, value_name = "FILE")]
    registry: PathBuf,
    /// A folder of other statements, of which a later one may decide, with a folder for each member
    #[arg(long, value_name = "FOLDER")]
    statements: Vec<PathBuf>,
    /// The statement
    #[arg(value_name = "STATEMENT")]
    statement: PathBuf,
    #[command(flatten)]
    form: Form,
}

/// `theta-rpki statement show`.
pub(super) fn show(args: &ShowArgs) -> Result<(), Failure> {
    let (path, registry) = (&args.statement, known::registry(&args.registry)?);
    let text = files::read(path)?;
    let wrong = |reason| Failure::Statement { path: path.clone(), reason };
    let (statement, signatures) = Statement::parse(&text).map_err(wrong)?;
    let others = known::statements(&args.statements, &registry, |text| known::statement(text, &registry))?.good;
    let member = registry.members.get(&statement.member);
    let keys = member.map(|member| Tally::of(&member.keys, &statement.signed_bytes(), &signatures));
    let reason = objection(&text, &registry, &others, Moment::now());
    let report = Report::new(path, &statement, keys).with_standing(reason);
    args.form.answer(&report, &report.words(Words(&statement)))
}

/// Why a statement does not count now, among others that do; `None`: it counts.
fn objection(text: &str, registry: &Registry, others: &[(PathBuf, Statement)], now: Moment) -> Option<String> {
    let statement = match known::statement(text, registry) {
        Ok(statement) => statement,
        Err(error) => return Some(error.to_string()),
    };
    if now.0 < statement.begins() {
        return Some(format!("it begins at {}", Moment(statement.begins())));
    }
    if let Some(until) = statement.until.filter(|until| *until <= now.0) {
        return Some(format!("it ended at {}", Moment(until)));
    }
    let (path, other) = others.iter().find(|(_, other)| undoes(other, &statement, now))?;
    Some(format!("statement {}, in {}, decides in its place", other.number, path.display()))
}

/// Whether what a statement grants or withdraws is not so any more beside another one.
fn undoes(other: &Statement, statement: &Statement, now: Moment) -> bool {
    let authorised = Authorised::at(&[statement.clone(), other.clone()], now.0);
    let stands = authorised.of(&statement.member).any(|granted| match (granted, &statement.attestation) {
        // A network has one ASPA, which is withdrawn whatever its providers are.
        (Attestation::Aspa { customer: one, .. }, Attestation::Aspa { customer: other, .. })
            if !statement.is_grant() =>
        {
            one == other
        }
        (granted, stated) => granted == stated,
    });
    stands != statement.is_grant()
}
