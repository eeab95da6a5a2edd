//! `theta group add`.

use std::path::PathBuf;

use clap::Args;
use theta_ledger::{MemberChange, founding::Card};

use super::{AskArgs, ask::look, one_card};
use crate::{exit::Failure, founding::warn_of_lookalikes, output::Output};

/// Options of `theta group add`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta group add echo/node.card
  theta group add echo/node.card --approval ann.approval

The card is what theta node init writes at the new machine, whose keys stay there. Compare its key with its owner, aloud (theta group \
show CARD): whoever carried the card could have exchanged it. As many members as decide have to agree, each by its own policy (group.change). No file is edited \
anywhere, and nothing stops; the others connect to the new node as soon as it runs.

With one member more, more of them decide, and as many may lie as before. The new node holds no share of a key until one is \
given to it: theta keys reshare KEY --holders ...")]
pub(crate) struct AddArgs {
    /// The card of the new machine
    #[arg(value_name = "CARD")]
    card: PathBuf,
    #[command(flatten)]
    ask: AskArgs,
}

/// Takes a new member in.
pub(crate) fn add(args: &AddArgs, output: Output) -> Result<(), Failure> {
    let card = one_card(&args.card)?;
    let session = args.ask.open()?;
    look(&session, |state| {
        let members = state.seats().values().filter_map(|seat| seat.card()).map(Card::name);
        warn_of_lookalikes(members.chain([card.name()]));
    })?;
    let doing = format!("adding {}", card.name());
    let changed = args.ask.change(&session, (&MemberChange::Add(card), Vec::new()), &doing)?;
    let [export, join] = changed.how_to_join();
    let reshare = "theta keys reshare KEY --holders ...     for each key of which it is to hold a share".to_owned();
    changed.report(output, "is a member", &[export, join, reshare])
}
