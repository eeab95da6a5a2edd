//! `theta pkcs11 watch`: a command that is run whenever enough nodes are back.
//!
//! Programs that sign with tokens do not all try again by themselves. This looks from outside whether as many nodes are there as the keys of a pool
//! take, and has the program make up for what it could not sign, by the command that its operator wrote down.

mod enough;
mod outage;
mod running;

use std::{
    ffi::OsString,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use serde::Serialize;
use theta_keypool::{PoolConfig, State};

use self::{
    enough::Shortage,
    outage::{Outage, Step},
    running::{Ended, run},
};
use crate::{
    connect::{ClientArgs, Session},
    exit::Failure,
    output::{self, BAD, GOOD, Output},
    units,
};

/// Options of `theta pkcs11 watch`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta pkcs11 watch --config pkcs11.toml -- knotc -b zone-reload example.org.      Knot, whose zone is in a file
  theta pkcs11 watch --config pkcs11.toml -- knotc -b zone-retransfer example.org.  Knot, which gets the zone from a primary

It runs beside the program that signs, for as long as that does. Every few seconds it asks the nodes how they are. When fewer are there than the \
keys take that programs have of the pool, it says so; when enough are back, it runs the command, and again if the command fails, until it has \
succeeded or too few are there once more. The words are the command's own: no shell reads them. The command has this program's rights, and \
nothing that a node says becomes a part of it.")]
pub(crate) struct WatchArgs {
    /// The module's configuration [default: where the module looks for it]
    #[arg(long, value_name = "FILE", env = "THETA_PKCS11_CONFIG")]
    config: Option<PathBuf>,
    /// The pool, where the configuration has several
    #[arg(long, value_name = "NAME")]
    pool: Option<String>,
    /// How often to look; less than the configuration's timeout_ms, or what fails in between may not be seen
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = units::parse_duration)]
    every: Duration,
    /// How long the command may take before it is killed, and counts as failed
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = units::parse_duration)]
    patience: Duration,
    /// The command and its arguments, behind --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    #[command(flatten)]
    client: ClientArgs,
}

/// What happens, one line each.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event<'a> {
    /// Too few nodes are there.
    Lost { shortage: &'a Shortage },
    /// The command is run.
    Back { command: &'a str },
    /// It has succeeded.
    Succeeded { command: &'a str },
    /// It has not, and is run again.
    Failed { command: &'a str, reason: String },
}

/// `theta pkcs11 watch`. It ends when it is told to.
pub(super) fn watch(args: &WatchArgs, output: Output) -> Result<(), Failure> {
    let token = super::pool::token(args.config.as_deref(), args.pool.as_deref())?;
    let pool = token.pool.as_ref().ok_or_else(|| Failure::Internal("a token without its pool".to_owned()))?;
    let session = args.client.open()?;
    let words: Vec<String> = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let command = words.join(" ");
    let mut outage = Outage::default();
    loop {
        let shortage = look(&session, pool)?;
        match outage.see(shortage.is_some(), Instant::now()) {
            Step::Nothing => {}
            Step::Lost => {
                // It is there: that is what was seen.
                if let Some(shortage) = &shortage {
                    say(output, &Event::Lost { shortage })?;
                }
            }
            Step::Run => {
                say(output, &Event::Back { command: &command })?;
                let ended = run(&args.command, args.patience);
                outage.ended(matches!(ended, Ended::Well), Instant::now());
                say(
                    output,
                    &match ended {
                        Ended::Well => Event::Succeeded { command: &command },
                        Ended::Ill(reason) => Event::Failed { command: &command, reason },
                    },
                )?;
            }
        }
        thread::sleep(args.every);
    }
}

/// What the keys lack that programs have of the pool, if they lack anything.
fn look(session: &Session, pool: &PoolConfig) -> Result<Option<Shortage>, Failure> {
    let client = session.client();
    let (statuses, (listed, _)) = session.block_on(async { tokio::join!(client.status(), client.list_keys()) });
    let bound = match pool.bindings.read() {
        Ok(bindings) => bindings.iter().filter(|it| it.state == State::Bound).map(|it| it.key_id).collect(),
        Err(error) => {
            // Somebody puts it right; meanwhile what the group takes is looked at.
            output::diagnostic("warning", &error.to_string());
            Vec::new()
        }
    };
    let known = bound.iter().filter_map(|id| client.known().of_id(&theta_schemes::keys::KeyId::from_bytes(*id)));
    let needs: Vec<_> = known.map(|key| enough::need(&key.public, key.delivery, &listed)).collect();
    Ok(enough::shortage(client.group().threshold(), &needs, &enough::present(&statuses)))
}

fn say(output: Output, event: &Event<'_>) -> Result<(), Failure> {
    output.result(event, |out| match event {
        Event::Lost { shortage } => writeln!(out, "{BAD}too few nodes are there{BAD:#}: {shortage}"),
        Event::Back { command } => writeln!(out, "{GOOD}enough nodes are back{GOOD:#}: running {command}"),
        Event::Succeeded { command } => writeln!(out, "{GOOD}ok{GOOD:#} {command}"),
        Event::Failed { command, reason } => {
            writeln!(out, "{BAD}failed{BAD:#} {command}: {reason}; it is run again")
        }
    })
}
