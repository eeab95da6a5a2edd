//! `theta-rpki-publication`: publishes an RPKI repository.

use std::{
    fmt,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    thread,
    time::{Duration, SystemTime},
};

use clap::{Parser, Subcommand};
use rpki::{repository::x509::Time, uri::Https};
use theta_names::WallTime;
use theta_rpki_publication::{
    check, disk,
    due::{self, Step},
    objects::Objects,
    publication::{self, Outcome, Settings},
};

/// Publishes the objects of an RPKI repository over RRDP and for rsync
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Publishes what is in a folder, if its objects fit together
    #[command(after_help = "\
Example:
  theta-rpki-publication publish --objects /var/lib/rpki/objects --output /srv/rpki --base https://rpki.example.net/rrdp/ --every 60

A web server serves /srv/rpki/rrdp/ at the base, an rsync server the folders below /srv/rpki/rsync/current/HOST/.
The object rsync://HOST/MODULE/PATH is the file HOST/MODULE/PATH of the folder.")]
    Publish {
        /// The folder of the objects that are to be published
        #[arg(long, value_name = "FOLDER")]
        objects: PathBuf,
        /// The folder that web server and rsync server read
        #[arg(long, value_name = "FOLDER")]
        output: PathBuf,
        /// Where the web server shows the folder rrdp/ of the output
        #[arg(long, value_name = "HTTPS-URI")]
        base: String,
        /// How long old files are kept for readers that are at them
        #[arg(long, value_name = "SECONDS", default_value_t = 7200)]
        grace: u64,
        /// How many deltas the notification lists at most
        #[arg(long, value_name = "NUMBER", default_value_t = 100)]
        most_deltas: usize,
        /// Publish again and again, with this time between
        #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
        every: Option<u64>,
    },
    /// Says which manifests and CRLs of a folder have to be renewed, most urgent first
    Due {
        /// The folder of the objects
        #[arg(long, value_name = "FOLDER")]
        objects: PathBuf,
    },
}

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(io::stderr).with_target(false).init();
    let Arguments { command } = Arguments::parse();
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), String> {
    match command {
        Command::Publish { objects, output, base, grace, most_deltas, every } => {
            let base = Https::from_string(format!("{}/", base.trim_end_matches('/')));
            let base = base.map_err(|error| format!("--base: {error}; it would be https://HOST/PATH/"))?;
            let settings = Settings { base, grace: Duration::from_secs(grace), most_deltas };
            loop {
                let outcome = publication::publish(&disk::Files, &objects, &output, &settings, WallTime::now().into());
                match (outcome, every) {
                    (Ok(outcome), _) => told(outcome),
                    // Who publishes again and again does so after a mistake, too; what was published still is.
                    (Err(error), Some(_)) => tracing::error!("{error}"),
                    (Err(error), None) => return Err(error.to_string()),
                }
                let Some(every) = every else { return Ok(()) };
                thread::sleep(Duration::from_secs(every));
            }
        }
        Command::Due { objects } => {
            let objects = Objects::read(&objects).map_err(|error| error.to_string())?;
            let points = check::points(&objects).map_err(|error| error.to_string())?;
            let mut out = io::stdout().lock();
            for due in due::due(&points, WallTime::now().into()) {
                let line = writeln!(out, "{}", Line(&due));
                line.map_err(|error| error.to_string())?;
            }
            Ok(())
        }
    }
}

fn told(outcome: Outcome) {
    match outcome {
        Outcome::Unchanged => tracing::debug!("all is published"),
        Outcome::Completed => tracing::info!("the tree for rsync is complete again"),
        Outcome::Published { session, serial, new, changed, gone } => {
            tracing::info!("published {session} {serial}: {new} new, {changed} changed, {gone} gone");
        }
    }
}

struct Line<'a>(&'a due::Due);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(due) = self;
        let time = |time: SystemTime| Time::from(time).to_rfc3339();
        match due.step {
            Step::Expired => write!(f, "expired  {}, at {}: renew at once", due.manifest, time(due.expires))?,
            Step::Renew => write!(f, "renew    {}, before {}", due.manifest, time(due.expires))?,
            Step::Wait => write!(f, "wait     {}, until {}", due.manifest, time(due.from))?,
        }
        match &due.crl {
            Some(crl) => write!(f, "; with {crl}"),
            None => Ok(()),
        }
    }
}
