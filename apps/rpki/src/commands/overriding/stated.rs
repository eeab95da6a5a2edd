//! `theta-rpki override grant` and `theta-rpki override withdraw`.

use clap::Args;
use theta_rpki::statements::Statement;

use super::{
    super::{
        about::{AboutArgs, MOST_NUMBER},
        failure::Failure,
        known,
        moment::Moment,
    },
    output::OutputArgs,
    text::Text,
};

/// Options of `theta-rpki override grant`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  theta-rpki override grant --registry registry.toml --member acme --roa AS64496 --prefix 192.0.2.0/24 --reason 'acme has lost its keys' --days 30 --key ann.key --out acme.toml

While it lasts it decides in the place of whatever the member states about the same, and it ends by itself. The member has to hold what is granted.
The reason stands in the log of every agent, and in the records of all nodes that sign what follows from it.")]
pub(crate) struct GrantArgs {
    #[command(flatten)]
    stated: StatedArgs,
}

/// Options of `theta-rpki override withdraw`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  theta-rpki override withdraw --registry registry.toml --member acme --roa AS64496 --prefix 192.0.2.0/24 --reason 'a court has decided so' --days 30 --key ann.key --out acme.toml

A ROA is withdrawn with all its prefixes, as it was granted; an ASPA by its customer, whatever its providers. When it has ended what the member states
decides again. A later grant or withdrawal with a near end (--until) gives back to the member what operators have stated before.")]
pub(crate) struct WithdrawArgs {
    #[command(flatten)]
    stated: StatedArgs,
}

/// What is stated in a member's place, why, and where it goes.
#[derive(Debug, Args)]
struct StatedArgs {
    #[command(flatten)]
    about: AboutArgs,
    /// Its number: of what operators state about the same the one with the highest decides [default: the time]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(..=MOST_NUMBER))]
    number: Option<u64>,
    #[command(flatten)]
    output: OutputArgs,
}

/// `theta-rpki override grant`.
pub(super) fn grant(args: &GrantArgs) -> Result<(), Failure> {
    state(&args.stated, true)
}

/// `theta-rpki override withdraw`.
pub(super) fn withdraw(args: &WithdrawArgs) -> Result<(), Failure> {
    state(&args.stated, false)
}

fn state(args: &StatedArgs, is_grant: bool) -> Result<(), Failure> {
    let registry = known::registry(&args.about.registry)?;
    let (from, (roa, aspa)) = (args.about.from(), args.about.texts(is_grant));
    let text = Text::Statement {
        rpki: registry.name.clone(),
        member: args.about.member.clone(),
        number: args.number.unwrap_or_else(|| Statement::first_number(Moment::now().0)),
        act: if is_grant { "grant" } else { "withdraw" },
        from: from.0,
        until: args.output.until(from),
        reason: args.output.reason.clone(),
        roa,
        aspa,
    };
    args.output.write(&text, &registry)
}
