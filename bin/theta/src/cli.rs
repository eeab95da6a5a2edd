//! The command line: its commands and their help.

use clap::{
    ArgMatches, FromArgMatches, Parser, Subcommand,
    builder::styling::{AnsiColor, Styles},
};

use crate::{
    access, ask, audit, cipher, doctor, elsewhere::Elsewhere, exit, exit::Failure, group, keys, ledger, node,
    output::Output, pkcs11, policy, signature, suites,
};

/// How help looks.
pub const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "\
Examples:
  theta group init --nodes 4 --threshold 2    make a group of four nodes in ./theta-group
  theta node run --dir theta-group/node-1     run one of them (each in a terminal of its own)
  theta encrypt letter.txt                    encrypt to the group's key, without asking anyone
  theta decrypt letter.txt.theta              any two nodes together decrypt it
  theta sign letter.txt && theta verify letter.txt letter.txt.sig
  theta coin 'lottery of 21 November'         a random value that nobody could choose or foresee
  theta keys create release=frost-ed25519     a key that nobody ever holds
  theta keys refresh release                  new shares, the same public key
  theta status                                who is up, and who was caught lying
  theta doctor                                what is wrong, and what to do about it

Commands that talk to nodes look for the client file or directory in --client, then $THETA_CLIENT, then ./theta-group/client.

Other programs stand beside this one, made from the same sources; theta dnssec and theta rpki are theta-dnssec and theta-rpki.
  theta-demo     see it all work, in seconds:          cargo run --release -- demo
  theta-bench    measure a group, and every scheme:    cargo run --release -p theta-bench -- --help";

/// Threshold cryptography as a service: a key that no single machine holds.
///
/// A group of n nodes holds shares of keys. Any k of them together decrypt, sign and draw common random values; fewer
/// than k learn nothing and can do nothing. Nodes that are down or lie do not stop the others.
#[derive(Debug, Parser)]
#[command(
    name = "theta",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    max_term_width = 110,
    styles = STYLES,
    after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{}", exit::EXIT_CODES),
)]
pub struct Cli {
    /// Print results as JSON, one object on one line
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Product(ProductCommand),
    /// Is a program of its own: theta-demo
    #[command(hide = true, disable_help_flag = true, disable_version_flag = true)]
    Demo(Elsewhere),
}

/// All commands of `theta` without the program around them, for programs that add others.
#[derive(Debug)]
pub struct ProductCommand(Box<Work>);

#[derive(Debug, Subcommand)]
enum Work {
    /// Make a group, and change who belongs to it while it runs
    #[command(subcommand)]
    Group(group::GroupCommand),
    /// Run a node of a group
    #[command(subcommand)]
    Node(node::NodeCommand),
    /// Encrypt a file to the group's key (needs no node)
    Encrypt(cipher::EncryptArgs),
    /// Decrypt a file with the help of k nodes, which see only its header
    Decrypt(cipher::DecryptArgs),
    /// Ask k nodes for the payload key of an encrypted file
    Decapsulate(cipher::DecapsulateArgs),
    /// Sign a file with the help of k nodes
    Sign(signature::SignArgs),
    /// Verify a signature of the group (needs no node)
    Verify(signature::VerifyArgs),
    /// Draw the random value that belongs to a name
    Coin(ask::CoinArgs),
    /// Check a coin with its proof (needs no node)
    VerifyCoin(Box<ask::VerifyCoinArgs>),
    /// List what keys can be: schemes, groups, purposes
    Suites,
    /// Make, renew, move, disable, back up and look at the group's keys
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Look at policy files: are they right, and what would they decide
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Read what nodes decided, and check that their logs are whole
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// See what the group has decided, and check it without believing any node
    #[command(subcommand)]
    Ledger(ledger::LedgerCommand),
    /// Consent to one request, as an approver of the policy
    Approve(Box<access::ApproveArgs>),
    /// Make keys for approvers
    #[command(subcommand)]
    Approver(access::ApproverCommand),
    /// Make files for clients
    #[command(subcommand)]
    Client(access::ClientCommand),
    /// Make tokens for clients without certificates, and prove them
    #[command(subcommand)]
    Token(access::TokenCommand),
    /// Sign with the group's keys from programs that know tokens (PKCS#11), such as OpenSSL, ssh and Knot DNS
    #[command(subcommand)]
    Pkcs11(pkcs11::Pkcs11Command),
    /// Sign a zone (DNSSEC) with other operators, none of whom has its keys: the agent of an operator
    #[command(disable_help_flag = true)]
    Dnssec(Elsewhere),
    /// Run an RPKI with other registries, none of which has its keys: the agent of a registry, its statements, and the issuer's
    #[command(disable_help_flag = true)]
    Rpki(Elsewhere),
    /// See which nodes are up, how they are connected, and who misbehaved
    Status(ask::StatusArgs),
    /// Find what is wrong with a group, and what to do: policies, keys, stores, clocks, disks, certificates
    Doctor(doctor::DoctorArgs),
    /// Is a program of its own: theta-bench
    #[command(hide = true, disable_help_flag = true, disable_version_flag = true)]
    Bench(Elsewhere),
}

impl Cli {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Product(command) => command.run(Output::new(self.json)),
            Command::Demo(elsewhere) => elsewhere.refuse("demo", "cargo run --release -- demo"),
        }
    }
}

impl FromArgMatches for ProductCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Work::from_arg_matches(matches).map(|work| Self(Box::new(work)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl Subcommand for ProductCommand {
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        Work::augment_subcommands(command)
    }

    fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
        Work::augment_subcommands_for_update(command)
    }

    fn has_subcommand(name: &str) -> bool {
        Work::has_subcommand(name)
    }
}

impl ProductCommand {
    /// Runs the command.
    pub fn run(self, output: Output) -> Result<(), Failure> {
        match *self.0 {
            Work::Group(command) => command.run(output),
            Work::Node(command) => command.run(output),
            Work::Encrypt(args) => cipher::encrypt(&args, output),
            Work::Decrypt(args) => cipher::decrypt(&args, output),
            Work::Decapsulate(args) => cipher::decapsulate(&args, output),
            Work::Sign(args) => signature::sign(&args, output),
            Work::Verify(args) => signature::verify(&args, output),
            Work::Coin(args) => ask::coin(&args, output),
            Work::VerifyCoin(args) => ask::verify_coin(&args, output),
            Work::Suites => suites::list(output),
            Work::Keys(command) => command.run(output),
            Work::Policy(command) => command.run(output),
            Work::Pkcs11(command) => command.run(output),
            Work::Audit(command) => command.run(output),
            Work::Ledger(command) => command.run(output),
            Work::Approve(args) => access::approve(&args, output),
            Work::Approver(command) => command.run(output),
            Work::Client(command) => command.run(output),
            Work::Token(command) => command.run(output),
            Work::Dnssec(elsewhere) => elsewhere.become_it("dnssec", output.json()),
            Work::Rpki(elsewhere) => elsewhere.become_it("rpki", output.json()),
            Work::Status(args) => ask::status(&args, output),
            Work::Doctor(args) => doctor::doctor(&args, output),
            Work::Bench(elsewhere) => elsewhere.refuse("bench", "cargo run --release -p theta-bench --"),
        }
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

    #[test]
    fn help_documents_exit_codes_and_examples() {
        let help = Cli::command().render_long_help().to_string();
        assert!(help.contains("Exit codes:") && help.contains("theta group init"), "{help}");
    }

    #[test]
    fn every_command_says_what_it_does() {
        fn check(command: &clap::Command) {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", command.get_name(), argument.get_id());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }
}
