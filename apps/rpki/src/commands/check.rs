//! `theta-rpki check`.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use clap::Args;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use theta_rpki::{
    attestation::Attestation,
    memory::Memory,
    overrides::{Override, Overrides, Overriding, words::FLAG},
    registry::{Pool, Registry},
    statements::{Identified, Stated, Statement},
};

use super::{
    failure::Failure,
    files,
    known::{self, Wrong},
    moment::Moment,
    overriding,
    statement::{AspaText, RoaText, texts},
    tal,
    terminal::Form,
};

/// Options of `theta-rpki check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  theta-rpki check --registry registry.toml --statements statements/ --overrides overrides/ --pool pool.keys --tal ta.tal

It ends with exit code 1 if the data cannot be read, or if a file counts for nothing.")]
pub(crate) struct CheckArgs {
    /// The registry's data: members, authorities, operators
    #[arg(long, value_name = "FILE")]
    registry: PathBuf,
    /// A folder of members' statements, with a folder for each member, by its handle
    #[arg(long, value_name = "FOLDER")]
    statements: Vec<PathBuf>,
    /// A folder of what operators override
    #[arg(long, value_name = "FOLDER")]
    overrides: Vec<PathBuf>,
    /// The keys of signed objects
    #[arg(long, value_name = "FILE")]
    pool: Option<PathBuf>,
    /// What relying parties begin with: the trust anchor's locator (RFC 8630)
    #[arg(long, value_name = "FILE")]
    tal: Vec<PathBuf>,
    #[command(flatten)]
    form: Form,
}

/// What is authorised, and what is wrong.
#[derive(Debug, Serialize)]
struct Report {
    /// Every member, with what it has authorised.
    members: BTreeMap<String, Vec<Grant>>,
    /// What operators permit, or state in members' places.
    overrides: Vec<overriding::Text>,
    /// The same in words.
    #[serde(skip)]
    overriding: Vec<String>,
    wrong: Vec<Wrong>,
}

/// A ROA or an ASPA that is authorised.
#[derive(Debug, Serialize)]
struct Grant {
    /// In words.
    what: String,
    /// The file of the object.
    object: String,
    /// When the grant ends, in seconds since 1970.
    until: Option<i64>,
    /// Why operators grant it in the member's place, if they do.
    #[serde(rename = "override", skip_serializing_if = "Option::is_none")]
    overriding: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    roa: Option<RoaText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aspa: Option<AspaText>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (member, grants) in &self.members {
            match grants.len() {
                0 => writeln!(f, "{member} has authorised nothing")?,
                _ => writeln!(f, "{member} has authorised")?,
            }
            for Grant { what, until, overriding, .. } in grants {
                let until = until.map(|until| format!(", until {}", Moment(until))).unwrap_or_default();
                let flag = overriding.as_ref().map_or("", |_| FLAG);
                writeln!(f, "  {flag}{what}{until}")?;
            }
        }
        self.overriding.iter().try_for_each(|words| writeln!(f, "{words}"))?;
        self.wrong.iter().try_for_each(|Wrong { file, reason }| writeln!(f, "{file} counts for nothing: {reason}"))
    }
}

/// `theta-rpki check`.
pub(super) fn check(args: &CheckArgs) -> Result<(), Failure> {
    let (registry, now) = (known::registry(&args.registry)?, Moment::now());
    let statements = known::statements(&args.statements, &registry, |text| known::statement(text, &registry))?;
    let overrides = known::read_all(&args.overrides, |text| {
        let read = Overriding::signed(text, registry.operators.as_ref())?;
        read.fits(&registry).map(|()| read)
    })?;
    let mut wrong: Vec<Wrong> = statements.wrong.into_iter().chain(overrides.wrong).collect();
    wrong.extend(args.pool.as_deref().and_then(check_pool));
    wrong.extend(args.tal.iter().flat_map(|path| tal::check(path, &registry)));
    let statements: Vec<Statement> = statements.good.into_iter().map(|(_, statement)| statement).collect();
    let in_force: Vec<_> = overrides.good.into_iter().map(|(_, one)| one).filter(|one| now.0 < one.until()).collect();
    let members = granted(&registry, &statements, &in_force, now);
    let overriding = in_force.iter().map(in_words).collect();
    let report = Report { members, overrides: in_force.iter().map(overriding::Text::of).collect(), overriding, wrong };
    args.form.answer(&report, &report.to_string())?;
    match report.wrong.len() {
        0 => Ok(()),
        count => Err(Failure::Wrong(count)),
    }
}

/// What is wrong with the file of objects' keys.
fn check_pool(path: &Path) -> Option<Wrong> {
    let read = files::read(path).map_err(|error| error.to_string());
    let line = |line: usize| {
        format!("line {line} is no name with a SubjectPublicKeyInfo of RSA in base64, or the name was there before")
    };
    let read = read.and_then(|text| Pool::parse(&text).map_err(line));
    read.err().map(|reason| Wrong { file: path.display().to_string(), reason })
}

/// An override in a line.
fn in_words(one: &Overriding) -> String {
    let until = Moment(one.until());
    match one {
        Overriding::Object(Override { digest, key, reason, .. }) => {
            let (digest, key, reason) = (hex::encode(digest), key.escape_debug(), reason.escape_debug());
            format!("operators permit {key} to sign {digest} until {until}: {reason}")
        }
        Overriding::Statement(stated) => {
            let digest = hex::encode(Sha256::digest(stated.signed_bytes()));
            format!("{FLAG}{} until {until}, SHA-256 {digest}", Identified::by_operators(stated.clone()).overriding())
        }
    }
}

/// What each member has authorised, or operators in its place.
fn granted(
    registry: &Registry,
    statements: &[Statement],
    overrides: &[Overriding],
    now: Moment,
) -> BTreeMap<String, Vec<Grant>> {
    let mut stated: Stated = statements.iter().cloned().collect();
    overrides.iter().collect::<Overrides>().statements.into_iter().for_each(|one| stated.override_by(one));
    let (standing, _) = stated.standing(&Memory::default(), now.0, None);
    let authorised = standing.authorised;
    let of_member = |member: &String| {
        let grants = authorised.files(member).map(|(object, what)| {
            let by = authorised.statement(member, object);
            let overriding = by.and_then(Identified::reason).map(str::to_owned);
            let until = match (&overriding, by) {
                (Some(_), Some(by)) => by.counted().until,
                _ => end(member, what, statements, now),
            };
            let (roa, aspa) = texts(what);
            Grant { what: what.to_string(), object: object.to_owned(), until, overriding, roa, aspa }
        });
        (member.clone(), grants.collect::<Vec<Grant>>())
    };
    registry.members.keys().map(of_member).collect()
}

/// When what is authorised ends: of the grants of the same, the one with the highest number decides. Of two with one number, which an honest
/// member does not sign, it is the end of the first that ends.
fn end(member: &str, what: &Attestation, statements: &[Statement], now: Moment) -> Option<i64> {
    let same = statements.iter().filter(|statement| {
        statement.member == member && statement.attestation == *what && statement.begins() <= now.0
    });
    let ends = same.filter_map(|statement| Some((statement.number, statement.until?)));
    ends.max_by_key(|(number, until)| (*number, std::cmp::Reverse(*until))).map(|(_, until)| until)
}
