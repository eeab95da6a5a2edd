//! `theta-dnssec`: programs for operators who sign a zone together.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use clap::{Args, Parser, Subcommand};
use theta_dnssec::{
    agent::{Agent, AgentError},
    consent::{PREVIOUS_SECONDS, Terms},
    denial::hashed::Parameters,
    digests::Guesses,
    look_ahead::serve_ahead,
    sources::{CopyFrom, Sources},
    transfer::{Primary, tsig::Key},
};

/// A day in seconds.
const DAY: u32 = 86_400;

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
    Agent(AgentOptions),
}

/// Options of `theta-dnssec agent`.
#[derive(Debug, Args)]
struct AgentOptions {
    /// The operator's own copy of the zone, unsigned
    #[arg(long, value_name = "FILE", required_unless_present = "primary", conflicts_with = "primary")]
    zone_file: Option<PathBuf>,
    /// The operator's own name server, from which the copy is transferred instead (AXFR and IXFR over TCP)
    #[arg(long, value_name = "HOST:PORT", requires = "tsig")]
    primary: Option<String>,
    /// The key that the primary knows: a file that its owner alone can read, with hmac-sha256, name and secret in base64 on one line
    #[arg(long, value_name = "FILE", requires = "primary", conflicts_with = "zone_file")]
    tsig: Option<PathBuf>,
    /// After how many seconds the primary is asked again whether the zone has changed
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    refresh: u64,
    /// Where the primary tells that the zone has changed (NOTIFY, by UDP and TCP, signed with the same key); more than once for several
    #[arg(long, value_name = "ADDRESS:PORT", requires = "primary", conflicts_with = "zone_file")]
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
}

fn main() -> ExitCode {
    theta_agent::program(|Arguments { command }| run(command))
}

fn run(Command::Agent(options): Command) -> Result<(), AgentError> {
    let (socket, look_ahead) = (options.socket.clone(), options.look_ahead.clone());
    let agent = Agent::open(options.sources()?)?;
    let service = look_ahead.map(|socket| serve_ahead(&agent, &socket)).transpose()?;
    match (socket, service) {
        (Some(socket), _service) => theta_agent::serve_alone(agent, &socket)?,
        (None, Some(service)) => service.wait(),
        // The arguments have one of the two.
        (None, None) => {}
    }
    Ok(())
}

impl AgentOptions {
    /// What the agent knows that they are of.
    fn sources(self) -> Result<Sources, AgentError> {
        let zone = match self.primary.zip(self.tsig) {
            Some((address, tsig)) => {
                let (key, refresh) = (Key::read(&tsig)?, Duration::from_secs(self.refresh));
                CopyFrom::Primary(Box::new(Primary { address, key, refresh }), self.notify)
            }
            // The arguments have one of the two.
            None => CopyFrom::File(self.zone_file.unwrap_or_default()),
        };
        // A signer that has a record of before signed anew does so for its lifetime of signatures.
        let previous_days = self.lifetime.iter().copied().max().unwrap_or(self.most_days);
        let most_key_days = self.most_key_days.unwrap_or(self.most_days);
        let [longest, longest_of_keys, ahead_of_keys, longest_of_previous] =
            [self.most_days, most_key_days, self.key_days_ahead, previous_days].map(|days| days.saturating_mul(DAY));
        let terms = Terms {
            longest,
            longest_of_keys,
            ahead_of_keys,
            key_ttls: self.key_ttl,
            previous_seconds: self.previous_seconds,
            longest_of_previous,
        };
        let most_blocks = self.most_hashes.saturating_mul(1_000_000);
        let guesses = Guesses { most_blocks, ..Guesses::of_days(&self.lifetime) };
        let Self { origin, keys, key_request, nsec3, .. } = self;
        Ok(Sources { origin, zone, keys, key_request, nsec3, terms, guesses })
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt as _, path::Path};

    use clap::{CommandFactory as _, error::ErrorKind};

    use super::*;

    /// What cannot be left out, with the copy from a file.
    const LEAST: &str = "--zone-file example.zone --origin example. --keys zone.keys --socket zone.sock";

    fn parse(words: &str) -> Result<AgentOptions, ErrorKind> {
        let words = ["theta-dnssec", "agent"].into_iter().chain(words.split_whitespace());
        let parsed = Arguments::try_parse_from(words).map_err(|error| error.kind());
        parsed.map(|Arguments { command: Command::Agent(options) }| options)
    }

    fn sources(words: &str) -> Sources {
        parse(words).unwrap().sources().unwrap()
    }

    /// After how many seconds signatures end that are looked for.
    fn lifetimes(guesses: &Guesses) -> BTreeSet<u32> {
        guesses.styles.iter().map(|style| style.lifetime).collect()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_is_not_said_is_as_the_guide_says() {
        let Sources { origin, zone, keys, key_request, nsec3, terms, guesses } = sources(LEAST);
        assert_eq!((origin.as_str(), keys), ("example.", PathBuf::from("zone.keys")));
        assert!(matches!(zone, CopyFrom::File(path) if path == Path::new("example.zone")));
        assert_eq!((key_request, nsec3), (None, None));
        let longest_of_previous = 14 * DAY;
        assert_eq!(terms, Terms { previous_seconds: 120, longest_of_previous, ..Terms::lasting(35 * DAY) });
        assert_eq!((guesses.most_blocks, lifetimes(&guesses)), (10_000_000, BTreeSet::from([14 * DAY])));
    }

    /// Each has another value, so that none is taken for another one.
    #[test]
    fn every_option_is_heeded() {
        let said = "--nsec3 5,aabbccdd --most-days 21 --most-key-days 22 --key-days-ahead 23 --key-request request.ksr \
                    --previous-seconds 24 --lifetime 7,9 --key-ttl 25,26 --most-hashes 27";
        let Sources { key_request, nsec3, terms, guesses, .. } = sources(&format!("{LEAST} {said}"));
        assert_eq!(key_request, Some(PathBuf::from("request.ksr")));
        assert_eq!(nsec3, Some("5,aabbccdd".parse().unwrap()));
        let expected = Terms {
            longest: 21 * DAY,
            longest_of_keys: 22 * DAY,
            ahead_of_keys: 23 * DAY,
            key_ttls: vec![25, 26],
            previous_seconds: 24,
            longest_of_previous: 9 * DAY,
        };
        assert_eq!(terms, expected);
        assert_eq!((guesses.most_blocks, lifetimes(&guesses)), (27_000_000, BTreeSet::from([7 * DAY, 9 * DAY])));
        // Keys are not signed for longer than all else, unless that is said.
        assert_eq!(sources(&format!("{LEAST} --most-days 21")).terms.longest_of_keys, 21 * DAY);
    }

    #[test]
    fn a_copy_comes_from_a_primary_with_the_key_of_a_file_that_its_owner_alone_can_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("transfer.key");
        fs::write(&file, "hmac-sha256 transfer. YW4gZXhhbXBsZSdzIHNlY3JldCwgb2YgMzIgYnl0ZXM=\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let said = format!(
            "--primary ns.example:53 --tsig {} --refresh 28 --notify 192.0.2.7:5353 --notify [2001:db8::7]:5353 --origin example. \
             --keys zone.keys --socket zone.sock",
            file.display()
        );
        let CopyFrom::Primary(primary, notify) = sources(&said).zone else { panic!("{said}") };
        assert_eq!((primary.address.as_str(), primary.refresh), ("ns.example:53", Duration::from_secs(28)));
        assert_eq!(notify, ["192.0.2.7:5353", "[2001:db8::7]:5353"].map(|address| address.parse().unwrap()));

        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let error = parse(&said).unwrap().sources().unwrap_err();
        assert!(matches!(error, AgentError::Key(_)) && error.to_string().contains("chmod 600"), "{error}");
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let rest = "--origin example. --keys zone.keys --socket zone.sock";
        for (words, expected) in [
            (rest.to_owned(), ErrorKind::MissingRequiredArgument),
            (format!("{rest} --primary 192.0.2.53:53"), ErrorKind::MissingRequiredArgument),
            (format!("{LEAST} --primary 192.0.2.53:53 --tsig transfer.key"), ErrorKind::ArgumentConflict),
            (format!("{LEAST} --tsig transfer.key"), ErrorKind::ArgumentConflict),
            (format!("{LEAST} --notify 192.0.2.7:5353"), ErrorKind::ArgumentConflict),
            (LEAST.replace("--socket zone.sock", ""), ErrorKind::MissingRequiredArgument),
            (format!("{LEAST} --refresh 0"), ErrorKind::ValueValidation),
            (format!("{LEAST} --most-days 0"), ErrorKind::ValueValidation),
            (format!("{LEAST} --most-days 3651"), ErrorKind::ValueValidation),
            (format!("{LEAST} --lifetime 14,0"), ErrorKind::ValueValidation),
            (format!("{LEAST} --nsec3 101"), ErrorKind::ValueValidation),
            (format!("{LEAST} --nsec3 0,xy"), ErrorKind::ValueValidation),
        ] {
            assert_eq!(parse(&words).map(|_| ()), Err(expected), "{words}");
        }
        // Where nothing but the module asks it takes no socket for the node.
        assert!(parse(&LEAST.replace("--socket", "--look-ahead")).is_ok());
    }
}
