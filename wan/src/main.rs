//! `theta-wan`: a wide area network on one machine.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]
#![cfg_attr(not(target_os = "linux"), allow(missing_docs, unused, reason = "there is nothing but an error"))]

#[cfg(target_os = "linux")]
mod check;
#[cfg(target_os = "linux")]
mod run;
mod show;

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::{Args, Parser, Subcommand};
use theta_wan::{MAX_NODES, Profile, ProfileError};

const EXIT_CODES: &str = "\
Exit codes: 0 all well; 1 `check` found something outside of its bounds, or something failed; 2 usage; 3 the system does not allow \
namespaces or TUN devices. `run` and `at` pass on the code of the command (128 and the signal's number where one ended it); where \
they fail otherwise it is 125, or 127 if the command cannot be started.";

/// Wide area networks on one machine: delay, jitter, loss and rate between real sockets.
#[derive(Debug, Parser)]
#[command(name = "theta-wan", version, arg_required_else_help = true, max_term_width = 110, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the profiles that come with it
    Profiles,
    /// Show what lies between the regions of a profile, and where the numbers come from
    Show {
        /// A name (`theta-wan profiles`), or a file with a / or the ending .toml
        profile: String,
        /// One object on one line; times in seconds and nanoseconds, rates in bits a second
        #[arg(long)]
        json: bool,
    },
    /// Print the addresses that nodes will have, for `theta group init --host`
    Addresses {
        /// How many nodes
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_NODES)))]
        nodes: u16,
    },
    /// Run a command for each node, each in a network of its own
    Run(RunArgs),
    /// Within `run`: become a command in the network of a node
    At {
        /// The node; 0 is the client
        node: u16,
        /// The command
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Measure with real sockets what is emulated, and compare
    Check {
        /// Some seconds instead of a minute
        #[arg(long)]
        short: bool,
        /// Only say whether this system allows namespaces and TUN devices
        #[arg(long)]
        able: bool,
        /// One object on one line
        #[arg(long)]
        json: bool,
    },
}

/// Options of `theta-wan run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta-wan run --profile continents --nodes 3 --client 'ping -c 3 198.18.0.2' -- sleep infinity
  theta group init --nodes 7 --threshold 3 --host $(theta-wan addresses --nodes 7)
  theta-wan run --profile four-regions --nodes 7 --client 'sleep 3; theta coin lottery' -- \\
    sh -c 'theta node run --dir theta-group/node-$THETA_WAN_NODE'

Each command has THETA_WAN_NODE (0 at the client), THETA_WAN_NODES, THETA_WAN_ADDRESS, THETA_WAN_ADDRESSES (those of all nodes, \
with commas), THETA_WAN_CLIENT, THETA_WAN_REGION and THETA_WAN_PROFILE in its environment. It sees no other network than \
this one, and no other processes. When the run ends, however it ends, all that was started in it is ended.")]
pub(crate) struct RunArgs {
    /// A name (`theta-wan profiles`), or a file with a / or the ending .toml
    #[arg(long)]
    pub(crate) profile: String,
    /// How many nodes
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_NODES)))]
    pub(crate) nodes: u16,
    /// A line for `sh`, run at the client; everything ends with it, with its exit code [default: when all commands have ended, or
    /// one has failed]
    #[arg(long, value_name = "LINE", conflicts_with = "once")]
    pub(crate) client: Option<String>,
    /// Run the command once, at the client, from where `theta-wan at NODE` leads to the nodes
    #[arg(long)]
    pub(crate) once: bool,
    /// Decides which packets are lost and how delay changes
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Say in the end what became of all packets, on standard error
    #[arg(long)]
    pub(crate) counters: bool,
    /// Use a user namespace also where it is not needed, in which the command seems to be root
    #[arg(long)]
    pub(crate) user_namespace: bool,
    /// The command
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<String>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error("{0}")]
    Usage(String),
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Refused(#[from] theta_wan::Refusal),
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Check(#[from] check::CheckError),
    #[error("cannot start {command:?}: {error}")]
    Start { command: String, error: io::Error },
    #[error("cannot {what}: {error}")]
    Failed { what: &'static str, error: io::Error },
    #[error("this system is not Linux: it has neither network namespaces nor TUN devices")]
    #[cfg(not(target_os = "linux"))]
    NotLinux,
}

impl Failure {
    pub(crate) fn failed(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::Failed { what, error }
    }

    fn code(&self, runs: bool) -> u8 {
        match self {
            Self::Profile(_) | Self::Usage(_) => 2,
            #[cfg(target_os = "linux")]
            Self::Refused(theta_wan::Refusal::Namespaces(_) | theta_wan::Refusal::Tun(_))
            | Self::Check(check::CheckError::Refused(theta_wan::Refusal::Namespaces(_) | theta_wan::Refusal::Tun(_))) => {
                3
            }
            #[cfg(not(target_os = "linux"))]
            Self::NotLinux => 3,
            Self::Start { .. } => 127,
            _ if runs => 125,
            _ => 1,
        }
    }
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let runs = matches!(command, Command::Run(_) | Command::At { .. });
    match perform(command) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.code(runs))
        }
    }
}

fn perform(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Profiles => print(&show::list()),
        Command::Show { profile, json: false } => print(&show::profile(&Profile::find(&profile)?)),
        Command::Show { profile, json: true } => print_json(&Profile::find(&profile)?),
        Command::Addresses { nodes } => {
            let all: Vec<String> =
                (1..=nodes).filter_map(theta_wan::address).map(|address| address.to_string()).collect();
            print(&format!("{}\n", all.join(",")))
        }
        #[cfg(target_os = "linux")]
        Command::Run(args) => run::run(&args),
        #[cfg(target_os = "linux")]
        Command::At { node, command } => run::at(node, &command),
        #[cfg(target_os = "linux")]
        Command::Check { short, able, json } => checked(short, able, json),
        #[cfg(not(target_os = "linux"))]
        Command::Run(_) | Command::At { .. } | Command::Check { .. } => Err(Failure::NotLinux),
    }
}

/// Measures, prints, and returns whether all is within its bounds, as exit code.
#[cfg(target_os = "linux")]
fn checked(short: bool, able: bool, json: bool) -> Result<u8, Failure> {
    theta_wan::with_privileges()?;
    if able {
        theta_wan::Wan::new(&Profile::uniform("able", theta_wan::Line::IDEAL), 1, 1)?;
        return Ok(0);
    }
    let figures = check::figures(if short { check::Amount::SHORT } else { check::Amount::WHOLE })?;
    if json {
        print_json(&figures)?;
    } else {
        let mut text = format!("{:<56} {:>10} {:>10} {:>21}\n", "", "wanted", "measured", "within");
        for figure in &figures {
            let (least, most) = figure.bounds;
            let within = format!("{least:.2} to {most:.2} {}", figure.unit);
            let held = if figure.holds() { "" } else { "  NO" };
            let check::Figure { what, wanted, measured, .. } = figure;
            text.push_str(&format!("{what:<56} {wanted:>10.3} {measured:>10.3} {within:>24}{held}\n"));
        }
        print(&text)?;
    }
    Ok(u8::from(!figures.iter().all(check::Figure::holds)))
}

/// One line on standard error.
pub(crate) fn note(text: &str) {
    eprintln!("theta-wan: {text}");
}

#[cfg(target_os = "linux")]
pub(crate) fn print_report(report: &theta_wan::Report) {
    let theta_wan::Counters { sent, delivered, lost, dropped, overflowed, strays, refused } = report.counters;
    let [mean, p99, most] = report.late();
    note(&format!(
        "{sent} packets sent, {delivered} delivered, {lost} lost, {dropped} dropped by full queues, {overflowed} dropped because too \
         much was under way, {refused} not taken at their end, {strays} strays; late by {mean:.1?} on average, {p99:.1?} in 99 of 100, \
         {most:.1?} at most"
    ));
}

fn print_json(value: &impl serde::Serialize) -> Result<u8, Failure> {
    let line = serde_json::to_string(value).map_err(|error| Failure::failed("write JSON")(error.into()))?;
    print(&format!("{line}\n"))
}

/// Writes to standard output, whose reader may have closed it, as `head` does.
fn print(text: &str) -> Result<u8, Failure> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed("write the output")(error)),
        _ => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
