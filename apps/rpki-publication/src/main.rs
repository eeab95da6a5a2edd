//! `theta-rpki-publication`: publishes an RPKI repository.

mod json;

use std::{
    collections::BTreeSet,
    fmt,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{Duration, SystemTime},
};

use clap::{Parser, Subcommand};
use rpki::{
    repository::x509::Time,
    uri::{Https, Rsync},
};
use theta_names::WallTime;
use theta_rpki_publication::{
    check, disk,
    due::{self, Step},
    objects::Objects,
    publication::{self, Outcome, Report, Settings},
};

/// Publishes an RPKI repository: what an issuer leaves in a folder goes out over RRDP and rsync
///
/// It has no key and signs nothing. It takes signed objects from a folder, refuses them if relying parties would, and writes files that any web
/// server and any rsync server can serve. Each change is visible at once and whole, or not at all.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
To begin:
  1. An issuer leaves its objects in a folder. The object rsync://HOST/MODULE/PATH is the file HOST/MODULE/PATH of it:
       /var/lib/rpki/objects/rpki.example.net/repo/ca/ca.mft
  2. Publish, once or again and again:
       theta-rpki-publication publish --objects /var/lib/rpki/objects --output /srv/rpki --base https://rpki.example.net/rrdp/ --every 60
  3. Let a web server serve /srv/rpki/rrdp/ at the base, and an rsync server /srv/rpki/rsync/current/HOST/MODULE as MODULE.
  4. See what has to be renewed, and when:
       theta-rpki-publication due --objects /var/lib/rpki/objects

Exit codes: 0 if all went well, also with warnings; 1 if not; 2 if the command line is wrong.
docs/guides/rpki-publication.md says the rest."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Print results as JSON, an object on each line, for programs; what is for people stays on the standard error
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Publishes what is in a folder, if it can be
    #[command(after_help = "\
What is refused, with one sentence that says why; what was published before stays:
  - what does not fit together: objects that are on no manifest, or are others than it lists; files that are no objects
  - a manifest or CRL that has changed and is not current, has no higher number than the published one, or has a wrong signature
  - the objects of an authority that are not there, although its certificate is
What is warned of, and holds nothing up: a publication point that is as it was published, and has expired since; one that was missing before, too.

Examples:
  theta-rpki-publication publish --objects objects --output /srv/rpki --base https://rpki.example.net/rrdp/
  theta-rpki-publication publish ... --every 60 --json      each run is a line: outcome, session, serial, new, changed, gone, warnings
  theta-rpki-publication publish ... --new-session          once, after files of the output were lost, or to move to another base

A web server serves OUTPUT/rrdp/ at the base, an rsync server the folders below OUTPUT/rsync/current/HOST/.")]
    Publish {
        /// The folder of the objects that are to be published
        #[arg(long, value_name = "FOLDER")]
        objects: PathBuf,
        /// The folder that web server and rsync server read; it is made if there is none
        #[arg(long, value_name = "FOLDER")]
        output: PathBuf,
        /// Where the web server shows the folder rrdp/ of the output
        #[arg(long, value_name = "HTTPS-URI", value_parser = base_uri)]
        base: Https,
        /// Publish again and again, with this time between; one run otherwise
        #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
        every: Option<u64>,
        /// Publish although the objects of an authority are missing that has this manifest; may be given several times
        ///
        /// For an authority that has a certificate, and no objects yet. Once that is published it is known, and a warning.
        #[arg(long, value_name = "RSYNC-URI", value_parser = manifest_uri)]
        without: Vec<Rsync>,
        /// Begin a new session, for when what is published cannot be continued; relying parties read everything once more
        #[arg(long)]
        new_session: bool,
        /// How long old files are kept for readers that are at them
        #[arg(long, value_name = "SECONDS", default_value_t = 7200)]
        grace: u64,
        /// How many deltas the notification lists at most
        #[arg(long, value_name = "NUMBER", default_value_t = 100)]
        most_deltas: usize,
    },
    /// Says which manifests and CRLs of a folder have to be renewed, most urgent first
    #[command(after_help = "\
On each line is a publication point:
  expired  relying parties refuse all of its objects: renew at once
  renew    half of its time is over: renew
  wait     nothing to do before the time that is named

With --json: step, manifest, crl (if it is to be renewed as well), from, expires.")]
    Due {
        /// The folder of the objects
        #[arg(long, value_name = "FOLDER")]
        objects: PathBuf,
    },
}

fn base_uri(text: &str) -> Result<Https, String> {
    let base = Https::from_string(format!("{}/", text.trim_end_matches('/')));
    base.map_err(|error| format!("{error}; it would be https://HOST/PATH/"))
}

fn manifest_uri(text: &str) -> Result<Rsync, String> {
    Rsync::from_string(text.to_owned()).map_err(|error| format!("{error}; it would be rsync://HOST/MODULE/PATH"))
}

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(io::stderr).with_target(false).init();
    let Arguments { command, json } = Arguments::parse();
    match run(command, json) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command, json: bool) -> Result<(), String> {
    match command {
        Command::Publish { objects, output, base, every, without, new_session, grace, most_deltas } => {
            let settings = Settings { base, new_session, without, grace: Duration::from_secs(grace), most_deltas };
            publish(&objects, &output, settings, every.map(Duration::from_secs), json)
        }
        Command::Due { objects } => {
            let objects = Objects::read(&objects).map_err(|error| error.to_string())?;
            let points = check::points(&objects).map_err(|error| error.to_string())?;
            for due in due::due(&points, WallTime::now().into()) {
                if json {
                    print(&json::due(&due))?;
                } else {
                    print(&Line(&due))?;
                }
            }
            Ok(())
        }
    }
}

/// One run, or, with a time between them, one after the other.
fn publish(
    objects: &Path,
    output: &Path,
    mut settings: Settings,
    every: Option<Duration>,
    json: bool,
) -> Result<(), String> {
    let mut warned = BTreeSet::new();
    loop {
        let run = publication::publish(&disk::Files, objects, output, &settings, WallTime::now().into());
        if json {
            print(&json::run(&run))?;
        }
        match run {
            Ok(report) => {
                settings.new_session = false;
                warned = tell(&report, &warned);
            }
            // Who publishes again and again does so after a mistake, too; what was published still is.
            Err(error) if every.is_some() => tracing::error!("{error}"),
            Err(error) => return Err(error.to_string()),
        }
        let Some(every) = every else { return Ok(()) };
        thread::sleep(every);
    }
}

fn print(line: &impl fmt::Display) -> Result<(), String> {
    let mut out = io::stdout().lock();
    // Who reads lines of a program that runs on gets each as soon as it is there.
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| error.to_string())
}

/// Logs what a run did, and those of its warnings that the run before did not have. Returns the warnings.
fn tell(report: &Report, warned: &BTreeSet<String>) -> BTreeSet<String> {
    let warnings: BTreeSet<String> = report.warnings.iter().map(ToString::to_string).collect();
    for warning in warnings.difference(warned) {
        tracing::warn!("{warning}. The rest is published");
    }
    let count = match warnings.len() {
        0 => String::new(),
        1 => "; 1 warning".to_owned(),
        count => format!("; {count} warnings"),
    };
    match report.outcome {
        Outcome::Unchanged if warnings == *warned => tracing::debug!("all is published{count}"),
        Outcome::Unchanged => tracing::info!("all is published{count}"),
        Outcome::Completed => tracing::info!("the tree for rsync is complete again{count}"),
        Outcome::Published { session, serial, new, changed, gone } => {
            tracing::info!("published {session} {serial}: {new} new, {changed} changed, {gone} gone{count}");
        }
    }
    warnings
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
