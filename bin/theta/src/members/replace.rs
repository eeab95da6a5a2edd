//! `theta group replace`.

use std::{path::PathBuf, str::FromStr};

use clap::Args;
use serde::Serialize;
use theta_ledger::founding::{Card, Fingerprint};
use theta_ledger::{LedgerId, LedgerState, MemberChange};
use theta_names::{NodeId, WallTime};

use super::{
    AskArgs, aloud,
    ask::{Changed, look},
    in_words,
    memory::Memory,
    one_card, operator,
};
use crate::{
    access::confirm,
    connect::Session,
    exit::Failure,
    ledger,
    output::{self, Output},
};

/// Options of `theta group replace`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta group replace 3 gamma2/node.card --operator gamma.operator --first-use
  theta group replace 3 gamma2/node.card --operator gamma.operator --sign-only --ledger payments.ledger --fingerprint 'XEVM 0ACS ...'
  theta group replace 3 gamma2/node.card --signature 8f21...
  theta group replace 3 gamma2/node.card                     without the operator's key, which was lost: as the others agree

For a machine that lost its store, or everything, or that has been stolen. The new one is made with theta node init --replaces, and has keys of its \
own. The place stays its organisation's, so that the signature of its operator is enough: the other members' policies only have to \
let it be brought (group.renew). Where that key was lost, too, as many members as decide have to agree (group.change).

With --sign-only it takes no network, prints the signature, and sends nothing. What the key signs is remembered beside it, in KEY.signed; where \
there is none yet, --first-use says that it has signed nothing. \
The shares that the machine held are recovered afterwards (theta keys recover); if it was stolen, refresh them (theta keys refresh). In a group such as 2 of 3, \
where all have to decide, the one that is gone is missed: see theta group warrant.")]
pub(crate) struct ReplaceArgs {
    /// The member's number
    #[arg(value_name = "NODE", value_parser = clap::value_parser!(u16).range(1..))]
    node: u16,
    /// The card of the new machine
    #[arg(value_name = "CARD")]
    card: PathBuf,
    /// The key of the member's operator, which signs the replacement
    #[arg(long, value_name = "KEY", conflicts_with = "signature")]
    operator: Option<PathBuf>,
    /// The operator's signature, as --sign-only printed it
    #[arg(long, value_name = "HEX")]
    signature: Option<SignatureWord>,
    /// Sign, print the signature, and send nothing
    #[arg(long, requires = "operator")]
    sign_only: bool,
    /// Sign although the key has signed for another machine in this place, which may still come
    #[arg(long, requires = "operator")]
    besides: bool,
    /// The operator's key has never signed anything: there is nothing beside it yet that remembers
    #[arg(long, requires = "operator")]
    first_use: bool,
    /// Sign without being asked
    #[arg(long)]
    yes: bool,
    /// For --sign-only without a network: the group's ledger, as theta ledger export writes it
    #[arg(long, value_name = "FILE", requires = "sign_only")]
    ledger: Option<PathBuf>,
    /// The group's fingerprint, as its members compared it [default: that of the client's group]
    #[arg(long, value_name = "FINGERPRINT", requires = "ledger")]
    fingerprint: Option<Fingerprint>,
    #[command(flatten)]
    ask: AskArgs,
}

/// The word of a member's operator.
#[derive(Debug, Args)]
pub(crate) struct OperatorsWord {
    /// The key of the member's operator, which signs that this machine is in the other's place
    #[arg(long, value_name = "KEY")]
    operator: PathBuf,
    /// Sign although the key has signed for another machine in this place, which may still come
    #[arg(long)]
    besides: bool,
    /// The operator's key has never signed anything: there is nothing beside it yet that remembers
    #[arg(long)]
    first_use: bool,
    /// Sign without being asked
    #[arg(long)]
    yes: bool,
}

/// A signature in hexadecimal digits.
#[derive(Clone, Debug)]
struct SignatureWord([u8; 64]);

impl FromStr for SignatureWord {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = hex::decode(text).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or("an operator's signature is 128 hexadecimal digits")
    }
}

#[derive(Serialize)]
struct Signed {
    node: u16,
    signature: String,
}

/// Puts another machine in a member's place.
pub(crate) fn replace(args: &ReplaceArgs, output: Output) -> Result<(), Failure> {
    let card = one_card(&args.card)?;
    let change = MemberChange::Replace { node: args.node, card: card.clone() };
    if let (true, Some(file)) = (args.sign_only, &args.ledger) {
        let id = args.fingerprint.map(|fingerprint| LedgerId::from_bytes(*fingerprint.as_bytes()));
        let checked = ledger::read(Some(file), id, &args.ask.client)?;
        return print(args, &sign(args, &checked.state, (&change, &card))?, output);
    }
    let session = args.ask.open()?;
    let proof = match &args.signature {
        Some(SignatureWord(signature)) => {
            check_signature(args, signature, &change, &look(&session, LedgerState::clone)?)?;
            signature.to_vec()
        }
        None if args.operator.is_some() => sign(args, &look(&session, LedgerState::clone)?, (&change, &card))?,
        None => Vec::new(),
    };
    if args.sign_only {
        return print(args, &proof, output);
    }
    let changed = bring(args, &session, (&change, proof))?;
    let [export, join] = changed.how_to_join();
    let recover = how_to_recover(args.node);
    changed.report(output, "is another machine", &[export, join, recover])
}

/// What gives another machine in a member's place the shares that the one before had.
pub(super) fn how_to_recover(node: u16) -> String {
    format!("theta keys recover --all --node {node}     when it runs: brings back its shares, and takes an approval")
}

fn bring(args: &ReplaceArgs, session: &Session, (change, proof): (&MemberChange, Vec<u8>)) -> Result<Changed, Failure> {
    args.ask.change(session, (change, proof), &format!("replacing node {}", args.node))
}

impl ReplaceArgs {
    /// To put another machine in a place by its operator's key, on the machine itself.
    pub(crate) fn by_operator(node: u16, card: PathBuf, word: OperatorsWord, ask: AskArgs) -> Self {
        let OperatorsWord { operator, besides, first_use, yes } = word;
        let (signature, sign_only, ledger, fingerprint) = (None, false, None, None);
        let operator = Some(operator);
        Self { node, card, operator, signature, sign_only, besides, first_use, yes, ledger, fingerprint, ask }
    }

    /// Signs and brings it, and waits until the group has decided it.
    pub(crate) fn put(&self, session: &Session) -> Result<(), Failure> {
        let card = one_card(&self.card)?;
        let change = MemberChange::Replace { node: self.node, card: card.clone() };
        let proof = sign(self, &look(session, LedgerState::clone)?, (&change, &card))?;
        bring(self, session, (&change, proof)).map(drop)
    }
}

fn print(args: &ReplaceArgs, signature: &[u8], output: Output) -> Result<(), Failure> {
    let signed = Signed { node: args.node, signature: hex::encode(signature) };
    output.result(&signed, |out| writeln!(out, "{}", signed.signature))
}

/// The card that a member has now.
fn present(args: &ReplaceArgs, state: &LedgerState) -> Result<(NodeId, Card), Failure> {
    let node = NodeId::try_from(args.node).map_err(|_| Failure::Usage("there is no node 0".to_owned()))?;
    let card = state.seats().get(&node).and_then(|seat| seat.card()).cloned();
    let card = card.ok_or_else(|| Failure::Usage(format!("there is no node {node} with a card in the group")))?;
    Ok((node, card))
}

fn check_signature(
    args: &ReplaceArgs,
    signature: &[u8; 64],
    change: &MemberChange,
    state: &LedgerState,
) -> Result<(), Failure> {
    let (node, present) = present(args, state)?;
    let signed = change.signed_by_operator(state.id(), &present.content().ceremony_key);
    if present.content().operator_key.vartime_verify(&signed, signature) {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "the signature is not that of the operator of {} for this card: its key, the card and the group have to be those that it was signed with",
        in_words(state, node)
    )))
}

/// The signature of the member's operator, which is remembered beside its key before it leaves.
fn sign(args: &ReplaceArgs, state: &LedgerState, (change, card): (&MemberChange, &Card)) -> Result<Vec<u8>, Failure> {
    let file = args.operator.as_deref().ok_or_else(|| Failure::internal("an operator without a key"))?;
    let (node, present) = present(args, state)?;
    let key = operator::read(file)?;
    let id = key.id().map_err(Failure::internal)?;
    let member = in_words(state, node);
    if present.content().operator_key != id {
        return Err(Failure::Usage(format!("{} is not the key of the operator of {member}", file.display())));
    }
    state
        .check(&theta_ledger::Action::Members(change.clone()))
        .map_err(|refusal| Failure::Failed(format!("nothing was signed: {refusal}")))?;
    let mut memory = Memory::open(file, &id, args.first_use)?;
    if let Some(earlier) = still_open(state, &memory, change).filter(|_| !args.besides) {
        return Err(Failure::Failed(format!(
            "nothing was signed: this key has signed for another machine in the place of {member}, with the key {earlier}, and whoever has that signature can \
             still bring it. If that machine is not to come any more, or you keep the signature yourself, sign with --besides"
        )));
    }
    output::note(format_args!("As the operator of {member} you sign that another machine is in its place, for ever:"));
    output::note(format_args!("  gone          {}", aloud(&present.content().ceremony_key)));
    output::note(format_args!("  instead       {}", aloud(&card.content().ceremony_key)));
    output::note(format_args!("  for nodes     {}", card.content().peer_address));
    output::note(format_args!("  for clients   {}", card.content().api_address));
    output::note("Be sure that the key is the one that theta group show DIR/node.card shows at the new machine.");
    confirm(args.yes, "Sign?")?;
    let what = format!("another machine in the place of {member} of the group {}", state.group());
    memory.remember_replacement(state.id(), change, state.height(), what)?;
    Ok(key.sign(&change.signed_by_operator(state.id(), &present.content().ceremony_key)).to_vec())
}

/// The key of another machine that was signed for in this place and may still come, if there is one.
fn still_open(state: &LedgerState, memory: &Memory, change: &MemberChange) -> Option<String> {
    let now = WallTime::now().seconds();
    let earlier = memory.replacements().iter().filter(|signed| {
        signed.ledger == *state.id() && signed.change.node() == change.node() && signed.change != *change
    });
    let open = earlier.filter_map(|signed| signed.change.card()).filter(|card| card.content().until >= now);
    // A key that was a member's once is no member's again.
    let mut open = open.filter(|card| !state.was_member(&card.content().ceremony_key));
    open.next().map(|card| aloud(&card.content().ceremony_key))
}
