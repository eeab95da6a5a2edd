//! `theta pkcs11 pool`: finished keys for programs that make their own.

mod stock;
mod supply;

use std::{
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use clap::Args;
use serde::Serialize;
use theta_keypool::{Config, PoolConfig, SUITES, Security, TokenConfig, shown_label};
use theta_schemes::{Suite, keys::KeyKind};

use self::{
    stock::{Kind, Stock},
    supply::Supply,
};
use crate::{
    connect::ClientArgs,
    exit::Failure,
    group::{ModulusArgs, plan::KeySpec},
    output::{self, GOOD, Output, Table},
    units,
};

/// Options of `theta pkcs11 pool`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta pkcs11 pool --config pkcs11.toml                     what is free, what is whose?
  theta pkcs11 pool --config pkcs11.toml --level 10          make keys of ecdsa-p256 and frost-ed25519 until 10 of each are free
  theta pkcs11 pool --config pkcs11.toml --level 10 --watch  ... and again, whenever programs have taken some
  theta pkcs11 pool --config pkcs11.toml --level 20 --suite sh00-pkcs1-sha256 --group theta-group     RSA, while the nodes do not run
  theta pkcs11 pool --config pkcs11.toml --level 10 --suite ecdsa-p256 --security passive     where pkcs11.toml says security = \"passive\", too

Programs such as name servers make their own keys. The PKCS#11 module gives them finished ones, of the pool that its configuration names \
(pool = \"zone\"): free keys of the group that are called zone-SUITE-NUMBER. Which of them belong to programs is kept on this machine, beside \
the configuration. A pool belongs to one machine: two machines need two pools. The client of this command may be another one than the module's.")]
pub(crate) struct PoolArgs {
    /// The module's configuration [default: where the module looks for it]
    #[arg(long, value_name = "FILE", env = "THETA_PKCS11_CONFIG")]
    config: Option<PathBuf>,
    /// The pool, where the configuration has several
    #[arg(long, value_name = "NAME")]
    pool: Option<String>,
    /// Make keys until so many are free
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    level: Option<u32>,
    /// Suites of which keys are made
    #[arg(long = "suite", value_name = "SUITE", value_delimiter = ',', value_parser = parse, requires = "level",
        default_values_t = [Suite::EcdsaP256, Suite::FrostEd25519])]
    suites: Vec<Suite>,
    /// What holders of keys of ECDSA may do that turn against them: with active whatever they like; with passive only put together what they have seen,
    /// and one whose software was changed may learn the key, and nobody notices. The configuration has to say the same (security = "passive"):
    /// otherwise programs are given no such key
    #[arg(long, value_name = "active|passive", requires = "level", default_value_t = Security::Active)]
    security: Security,
    /// Go on, and make keys whenever programs have taken some
    #[arg(long, requires = "level", conflicts_with = "group")]
    watch: bool,
    /// How often to look, with --watch
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::parse_duration, requires = "watch")]
    every: Duration,
    /// Directory that theta group init made: deal the keys there, while its nodes do not run
    #[arg(long, value_name = "DIR")]
    group: Option<PathBuf>,
    #[command(flatten)]
    modulus: ModulusArgs,
    /// How long the ceremony that makes one key may take
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = units::parse_duration)]
    patience: Duration,
    #[command(flatten)]
    client: ClientArgs,
}

fn parse(name: &str) -> Result<Suite, String> {
    let names = SUITES.map(Suite::name).join(", ");
    SUITES.into_iter().find(|suite| suite.name() == name).ok_or_else(|| format!("programs make keys of {names}"))
}

#[derive(Serialize)]
struct View {
    pool: String,
    token: String,
    bindings: PathBuf,
    suites: Vec<SuiteView>,
    made: Vec<String>,
}

#[derive(Serialize)]
struct SuiteView {
    suite: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bits: Option<u32>,
    free: usize,
    bound: usize,
    released: usize,
}

/// `theta pkcs11 pool`.
pub(super) fn pool(args: &PoolArgs, output: Output) -> Result<(), Failure> {
    let token = token(args.config.as_deref(), args.pool.as_deref())?;
    let pool = token.pool.as_ref().ok_or_else(|| Failure::Internal("a token without its pool".to_owned()))?;
    let wanted = args.wanted(pool)?;
    let supply = match &args.group {
        Some(directory) => Supply::of_stores(directory)?,
        None => Supply::of_nodes(&args.client, args.patience, &token)?,
    };
    wanted.iter().for_each(|(kind, _)| supply.comment(pool, kind.suite));
    let mut first = true;
    loop {
        let round = round(&supply, pool, &wanted);
        match round {
            Ok((stock, made)) if first || !made.is_empty() => report(&token, pool, &stock, made, output)?,
            Ok(_) => {}
            // The nodes come back, or somebody puts the bindings right.
            Err(failure) if args.watch => output::diagnostic("warning", &failure.to_string()),
            Err(failure) => return Err(failure),
        }
        if !args.watch {
            return Ok(());
        }
        first = false;
        thread::sleep(args.every);
    }
}

/// The token whose pool it is, in this configuration, or the one that the module would find.
pub(super) fn token(config: Option<&Path>, pool: Option<&str>) -> Result<TokenConfig, Failure> {
    let config = match config {
        Some(file) => Config::read(file),
        None => Config::load(false),
    };
    let config = config.map_err(|error| Failure::Usage(error.to_string()))?;
    let name = |token: &TokenConfig| token.pool.as_ref().map(|pool| pool.prefix.to_string());
    let names: Vec<String> = config.tokens.iter().filter_map(name).collect();
    let is_wanted = |token: &TokenConfig| name(token).is_some_and(|name| pool.is_none_or(|wanted| wanted == name));
    let mut found = config.tokens.into_iter().filter(is_wanted);
    match (found.next(), found.next()) {
        (Some(token), None) => Ok(token),
        (Some(_), Some(_)) => Err(Failure::Usage(format!("there are the pools {}: name one with --pool", names.join(", ")))),
        (None, _) if names.is_empty() => Err(Failure::Usage(
            "the configuration names no pool: write pool = \"NAME\" into a [[token]] of it, or name the file with --config".to_owned(),
        )),
        (None, _) => Err(Failure::Usage(format!("there is no such pool; the configuration has {}", names.join(", ")))),
    }
}

impl PoolArgs {
    /// How many of what are to be free.
    fn wanted(&self, pool: &PoolConfig) -> Result<Vec<(Kind, u32)>, Failure> {
        let Some(level) = self.level else { return Ok(Vec::new()) };
        if self.security != pool.security {
            return Err(Failure::Usage(format!(
                "keys with {} security are to be made, and the module's configuration says security = \"{}\": programs are given no others. \
                 Say the same in both, with --security and in the configuration",
                self.security, pool.security
            )));
        }
        let specs = self.suites.iter().map(|suite| KeySpec::of(*suite)).collect::<Result<Vec<_>, _>>()?;
        let bits = self.modulus.bits(&specs)?;
        if self.group.is_none() && self.suites.iter().any(|suite| suite.key_kind() == KeyKind::Rsa) {
            return Err(Failure::Usage(
                "keys of RSA take a dealer: stop the nodes, and name the directory of theta group init with --group"
                    .to_owned(),
            ));
        }
        let kind = |suite: &Suite| Kind { suite: *suite, bits: (suite.key_kind() == KeyKind::Rsa).then_some(bits) };
        Ok(self.suites.iter().map(|suite| (kind(suite), level)).collect())
    }
}

/// Looks, and makes what is missing: what there is then, and the names of the keys that were made.
fn round(supply: &Supply, pool: &PoolConfig, wanted: &[(Kind, u32)]) -> Result<(Stock, Vec<String>), Failure> {
    let mut made = Vec::new();
    // More are made only where programs take them as fast.
    let most = wanted
        .iter()
        .map(|(_, level)| usize::try_from(*level).unwrap_or(usize::MAX))
        .fold(SPARE, usize::saturating_add);
    loop {
        let stock = Stock::count(pool, &supply.members(), &supply.keys()?)?;
        let short = wanted.iter().find(|(kind, level)| stock.free(*kind) < *level);
        let Some((kind, _)) = short else { return Ok((stock, made)) };
        // It is counted again after each: a program may take some meanwhile, or another one make them.
        let named = supply.names()?;
        let taken = named.iter().filter_map(|name| pool.prefix.parse(name.as_str())).chain(stock.numbers(&pool.prefix));
        let taken = taken.filter(|(suite, _)| *suite == kind.suite).map(|(_, number)| number).collect();
        let name = pool.prefix.free_names(kind.suite, &taken).next();
        let name = name.ok_or_else(|| Failure::Internal(format!("the pool {} has no more names", pool.prefix)))?;
        if made.len() >= most {
            return Err(Failure::Failed(format!(
                "{most} keys were made, and are not free: look at the programs that take them"
            )));
        }
        supply.make(&name, *kind, pool.security)?;
        made.push(name.to_string());
    }
}

/// How many keys more are made at once than there have to be.
const SPARE: usize = 64;

fn report(
    token: &TokenConfig,
    pool: &PoolConfig,
    stock: &Stock,
    made: Vec<String>,
    output: Output,
) -> Result<(), Failure> {
    for (name, reason) in stock.unfit() {
        output::diagnostic("warning", &format!("{name} is given to no program: {reason}; who has made it?"));
    }
    for key in stock.rotated() {
        output::diagnostic(
            "warning",
            &format!("{key} is given to no program: pools give first versions, and this one was rotated"),
        );
    }
    let label = token.label.clone().or_else(|| Some(theta_client::read_group(&token.client).ok()?.name().to_owned()));
    let suites = stock.rows().map(|(Kind { suite, bits }, count)| SuiteView {
        suite: suite.name(),
        bits,
        free: count.free,
        bound: count.bound,
        released: count.released,
    });
    let view = View {
        pool: pool.prefix.to_string(),
        token: shown_label(label.as_deref().unwrap_or_default()).to_owned(),
        bindings: pool.bindings.path().to_owned(),
        suites: suites.collect(),
        made,
    };
    output.result(&view, |out| {
        for name in &view.made {
            writeln!(out, "{GOOD}ok{GOOD:#} made {name}")?;
        }
        writeln!(out, "pool {} of the token {}; bindings in {}", view.pool, view.token, view.bindings.display())?;
        if view.suites.is_empty() {
            return writeln!(out, "it has no keys yet: make some with --level");
        }
        let mut table = Table::new(&["suite", "free", "bound", "released"], &[1, 2, 3]);
        for SuiteView { suite, bits, free, bound, released } in &view.suites {
            let bits = bits.map(|bits| format!(", {bits} bits")).unwrap_or_default();
            table.row([format!("{suite}{bits}"), free.to_string(), bound.to_string(), released.to_string()]);
        }
        table.write(out)
    })
}
