//! The command line: what there is, and what `--help` teaches.

use clap::{
    Parser, Subcommand,
    builder::styling::{AnsiColor, Styles},
};

use crate::{
    access, ask, audit, bench, cipher, exit, exit::Failure, group, keys, node, output::Output, policy, signature,
    suites,
};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "\
Examples:
  theta demo                                  see it all work, in seconds
  theta group init --nodes 4 --threshold 2    make a group of four nodes in ./theta-group
  theta node run --dir theta-group/node-1     run one of them (each in a terminal of its own)
  theta encrypt letter.txt                    encrypt to the group's key, without asking anyone
  theta decrypt letter.txt.theta              any two nodes together decrypt it
  theta sign letter.txt && theta verify letter.txt letter.txt.sig
  theta coin 'lottery of 21 November'         a random value that nobody could choose or foresee
  theta keys create release=frost-ed25519     a key that nobody ever holds
  theta keys refresh release                  new shares, the same public key
  theta status                                who is up, and who was caught lying

Commands that talk to nodes look for the client directory in --client, then $THETA_CLIENT, then ./theta-group/client.";

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
pub(crate) struct Cli {
    /// Print results as JSON, one object on one line
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a real network on this machine and watch it decrypt, sign, lose a node and catch a liar
    #[cfg(feature = "demo")]
    Demo(crate::demo::DemoArgs),
    /// Make the directories of a new group: certificates, configuration, keys
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
    /// Consent to one request, as an approver of the policy
    Approve(Box<access::ApproveArgs>),
    /// Make keys for approvers
    #[command(subcommand)]
    Approver(access::ApproverCommand),
    /// Make directories for clients
    #[command(subcommand)]
    Client(access::ClientCommand),
    /// Make bearer tokens for clients without certificates
    #[command(subcommand)]
    Token(access::TokenCommand),
    /// See which nodes are up, how they are connected, and who misbehaved
    Status(ask::StatusArgs),
    /// Measure
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// The demo's node that sends false shares
    #[cfg(feature = "demo")]
    // A name that no typing error comes near to, so that it is never suggested.
    #[command(hide = true, name = "_x_liar")]
    DemoLiar(crate::demo::LiarArgs),
}

impl Cli {
    /// Does what was asked.
    pub(crate) fn run(self) -> Result<(), Failure> {
        let output = Output::new(self.json);
        match self.command {
            #[cfg(feature = "demo")]
            Command::Demo(args) => crate::demo::run(&args, output),
            #[cfg(feature = "demo")]
            Command::DemoLiar(args) => crate::demo::run_liar(&args),
            Command::Group(command) => command.run(output),
            Command::Node(command) => command.run(output),
            Command::Encrypt(args) => cipher::encrypt(&args, output),
            Command::Decrypt(args) => cipher::decrypt(&args, output),
            Command::Decapsulate(args) => cipher::decapsulate(&args, output),
            Command::Sign(args) => signature::sign(&args, output),
            Command::Verify(args) => signature::verify(&args, output),
            Command::Coin(args) => ask::coin(&args, output),
            Command::VerifyCoin(args) => ask::verify_coin(&args, output),
            Command::Suites => suites::list(output),
            Command::Keys(command) => command.run(output),
            Command::Policy(command) => command.run(output),
            Command::Audit(command) => command.run(output),
            Command::Approve(args) => access::approve(&args, output),
            Command::Approver(command) => command.run(output),
            Command::Client(command) => command.run(output),
            Command::Token(command) => command.run(output),
            Command::Status(args) => ask::status(&args, output),
            Command::Bench(command) => command.run(output),
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
