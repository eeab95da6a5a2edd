//! `theta-dnssec`: programs for operators who sign a zone together.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use clap::{Parser, Subcommand};
use theta_dnssec::{
    agent::{Agent, AgentError},
    consent::{PREVIOUS_SECONDS, Terms},
    denial::hashed::Parameters,
    digests::Guesses,
    look_ahead::serve_ahead,
    sources::{CopyFrom, Sources},
    transfer::{Primary, tsig::Key},
};

/// Signs a zone together with other operators, none of whom has its keys
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lets this operator's node sign what is in the operator's own copy of the zone
    #[command(after_help = "\
Example:
  theta-dnssec agent --zone-file /var/lib/zones/example.org --origin example.org. --keys zone.keys --socket /run/theta/zone.sock

The node's policy names the socket, and the rule that lets the name server sign names the agent:

  [[agent]]
  name = \"zone\"
  socket = \"/run/theta/zone.sock\"

  [[rule]]
  name = \"zone\"
  effect = \"allow\"
  clients = [\"name-server\"]
  keys = [\"zone-*\"]
  operations = [\"sign\", \"sign-digest\"]
  agent = \"zone\"

The zone file is the operator's own copy, from its own source, without signatures. It and the keys are read again when they change.
In its place, --primary 192.0.2.53:53 --tsig transfer.key transfers the copy from the operator's own name server, and with --notify 192.0.2.7:5353
as soon as it tells that the zone has changed.
The keys are those that may be in the zone, one on each line, as theta keys export NAME --format dnskey prints them; ksk before one says
that it signs the zone's keys alone, zsk that it does not.
The zone is signed with NSEC, or with NSEC3 if --nsec3 says how names are hashed: --nsec3 0 is what RFC 9276 recommends, and in Knot
nsec3: on, with nsec3-salt-length: 0. With algorithm 15 (Ed25519) the nodes are shown what they sign. With 13 (P-256) and 8 (RSA) they
see a digest (sign-digest); the agent finds out which record set has it, from the times that the name server gives its signatures: say its lifetime
of signatures with --lifetime if it is another one than 14 days.
A key of the keys that is kept offline signs ahead: --key-days-ahead says how far, and with 13 and 8
--key-request which times it is asked for.
With --look-ahead SOCKET it tells the PKCS#11 module of a name server on this machine which digests follow, so that they are signed together; without
--socket it does nothing else.")]
    Agent {
        /// The operator's own copy of the zone, unsigned
        #[arg(long, value_name = "FILE", required_unless_present = "primary", conflicts_with = "primary")]
        zone_file: Option<PathBuf>,
        /// The operator's own name server, from which the copy is transferred instead (AXFR and IXFR over TCP)
        #[arg(long, value_name = "HOST:PORT", requires = "tsig")]
        primary: Option<String>,
        /// The key that the primary knows: a file that its owner alone can read, with hmac-sha256, name and secret in base64 on one line
        #[arg(long, value_name = "FILE", requires = "primary")]
        tsig: Option<PathBuf>,
        /// After how many seconds the primary is asked again whether the zone has changed
        #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
        refresh: u64,
        /// Where the primary tells that the zone has changed (NOTIFY, by UDP and TCP, signed with the same key); more than once for several
        #[arg(long, value_name = "ADDRESS:PORT", requires = "primary")]
        notify: Vec<SocketAddr>,
        /// The zone's name, with its dot
        #[arg(long, value_name = "NAME")]
        origin: String,
        /// The public keys that may be in the zone, one on each line
        #[arg(long, value_name = "FILE")]
        keys: PathBuf,
        /// Names are denied by NSEC3, with so many additional iterations (0 is recommended) and this salt in hexadecimal digits
        #[arg(long, value_name = "ITERATIONS[,SALT]")]
        nsec3: Option<Parameters>,
        /// Where the node asks
        #[arg(long, value_name = "PATH", required_unless_present = "look_ahead")]
        socket: Option<PathBuf>,
        /// Where the PKCS#11 module of the name server asks which digests will be signed next (P-256 and RSA); its owner and group may
        #[arg(long, value_name = "PATH")]
        look_ahead: Option<PathBuf>,
        /// For how many days a signature may be valid
        #[arg(long, value_name = "DAYS", default_value_t = 35, value_parser = clap::value_parser!(u32).range(1..=3_650))]
        most_days: u32,
        /// For how many days a signature of the zone's keys may be valid, if not as long as others
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3_650))]
        most_key_days: Option<u32>,
        /// How many days ahead signatures of the zone's keys may be made, by a key that is kept offline
        #[arg(long, value_name = "DAYS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=3_650))]
        key_days_ahead: u32,
        /// The key signing request that such a key answers, as keymgr ZONE generate-ksr (Knot) or dnssec-ksr request (BIND) prints it: digests of
        /// the signatures that it asks for are recognised
        #[arg(long, value_name = "FILE")]
        key_request: Option<PathBuf>,
        /// For how many seconds after the copy has changed NSEC, NSEC3 and SOA records of the one before may be signed, as Knot asks with Ed25519
        /// before it makes the new ones; 0 refuses that
        #[arg(long, value_name = "SECONDS", default_value_t = PREVIOUS_SECONDS, value_parser = clap::value_parser!(u32).range(0..=86_400))]
        previous_seconds: u32,
        /// After how many days the name server's signatures end; several, if it changes them
        #[arg(
            long, value_name = "DAYS", default_values_t = [14], value_delimiter = ',',
            value_parser = clap::value_parser!(u32).range(1..=3_650)
        )]
        lifetime: Vec<u32>,
        /// The time to live of the zone's keys in seconds, if it is neither that of the SOA record nor an hour
        #[arg(long, value_name = "SECONDS", value_delimiter = ',')]
        key_ttl: Vec<u32>,
        /// How many million hashes, of 64 bytes each, finding out about one digest may take
        #[arg(long, value_name = "MILLIONS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
        most_hashes: u64,
    },
}

fn main() -> ExitCode {
    theta_agent::program(|Arguments { command }| run(command))
}

fn run(command: Command) -> Result<(), AgentError> {
    let Command::Agent {
        zone_file,
        primary,
        tsig,
        refresh,
        notify,
        origin,
        keys,
        nsec3,
        socket,
        look_ahead,
        most_days,
        most_key_days,
        key_days_ahead,
        key_request,
        previous_seconds,
        lifetime,
        key_ttl,
        most_hashes,
    } = command;
    let zone = match primary.zip(tsig) {
        Some((address, tsig)) => {
            let (key, refresh) = (Key::read(&tsig)?, Duration::from_secs(refresh));
            CopyFrom::Primary(Box::new(Primary { address, key, refresh }), notify)
        }
        // The arguments have one of the two.
        None => CopyFrom::File(zone_file.unwrap_or_default()),
    };
    // A signer that has a record of before signed anew does so for its lifetime of signatures.
    let previous_days = lifetime.iter().copied().max().unwrap_or(most_days);
    let [longest, longest_of_keys, ahead_of_keys, longest_of_previous] =
        [most_days, most_key_days.unwrap_or(most_days), key_days_ahead, previous_days]
            .map(|days| days.saturating_mul(86_400));
    let terms =
        Terms { longest, longest_of_keys, ahead_of_keys, key_ttls: key_ttl, previous_seconds, longest_of_previous };
    let most_blocks = most_hashes.saturating_mul(1_000_000);
    let guesses = Guesses { most_blocks, ..Guesses::of_days(&lifetime) };
    let agent = Agent::open(Sources { origin, zone, keys, key_request, nsec3, terms, guesses })?;
    let service = look_ahead.map(|socket| serve_ahead(&agent, &socket)).transpose()?;
    match (socket, service) {
        (Some(socket), _service) => theta_agent::serve_alone(agent, &socket)?,
        (None, Some(service)) => service.wait(),
        // The arguments have one of the two.
        (None, None) => {}
    }
    Ok(())
}
