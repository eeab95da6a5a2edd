//! `theta keys create`, `rotate`, `refresh`, `reshare`: ceremonies that the nodes hold among themselves.

use clap::Args;
use theta_client::{KeyChange, KeyRef};
use theta_network::group::GroupFile;
use theta_policy::SlotQuorum;
use theta_schemes::Purpose;

use super::{
    ceremonies::{CeremonyArgs, Held, hold, report},
    change::{DeliveryArgs, HoldersArgs, warn_of_passive},
};
use crate::{
    connect::Session,
    exit::Failure,
    group::plan::{self, KeySpec},
    output::{Output, note},
};

/// Options of `theta keys create`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys create release=frost-ed25519
  theta keys create vault=sg02-p256 beacon-2=cks05-bls04-min-sig
  theta keys create board=bls04-bls12381-min-pk --threshold 3 --holders 1,2,4,5
  theta keys create wallet=ecdsa-secp256k1 --threshold 2 --holders 1,2,3     ECDSA: 2 of 3, 3 of 5, 4 of 7, or more holders
  theta keys create vault=ecdsa-p256 --security active --majority honest     the same in words, as it is by default
  theta keys create wallet=ecdsa-p256 --majority dishonest --threshold 2 --holders 1,2     ECDSA between any two holders
  theta keys create names=bls04-bls12381-min-pk --delivery quorum     less work for each request, in a large group

The nodes make the key among themselves (distributed key generation): nobody ever has it whole, not for a moment. A node that \
cheats is left out and named, with evidence that anybody can check. All holders should be up; it takes more than k of \
them.

The holders of an ECDSA key compute its signatures together, by a protocol that --security and --majority select:
  --security active  --majority honest       malicious Shamir   k from 2 to 8, n >= 2k - 1; the default
  --security active  --majority dishonest    MASCOT             k from 2 to 15, also 2 of 2
  --security passive --majority honest       Shamir             as the first; a holder that lies may learn the key
  --security passive --majority dishonest    Semi-OT            as the second; a holder that lies may learn the key
Without --majority it is the honest one if n >= 2k - 1, and else the dishonest one.

theta suites lists what there is; RSA keys take a dealer, so a group whose members each made a node has none: theta keys deal.

Ctrl-C, and the end of --patience, end this command and not what the nodes were asked for: theta keys ceremonies shows it, theta keys cancel takes it back.")]
pub(crate) struct CreateArgs {
    /// Keys to make, each a SUITE or NAME=SUITE
    #[arg(value_name = "NAME=SUITE", required = true)]
    keys: Vec<KeySpec>,
    #[command(flatten)]
    delivery: DeliveryArgs,
    #[command(flatten)]
    holders: HoldersArgs,
    #[command(flatten)]
    ceremony: CeremonyArgs,
}

/// Options of `theta keys rotate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys rotate files
  theta encrypt new.txt --key files            to the new version
  theta decrypt old.txt.theta                  the old version goes on decrypting what was encrypted to it
  theta keys disable files@1                   until it is disabled

The next version of the key is made as theta keys create makes one, with the same suite, delivery, threshold and holders. It has \
another public key; older versions sign no more.")]
pub(crate) struct RotateArgs {
    /// The key
    key: KeyRef,
    #[command(flatten)]
    ceremony: CeremonyArgs,
}

/// Options of `theta keys refresh`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys refresh files
  theta keys refresh files@1      an older version

The holders get new shares of the same secret and destroy the old ones; the public key stays. Whoever stole fewer than k shares \
before has nothing after it, and shares in old backups are worthless. Requests go on meanwhile.")]
pub(crate) struct RefreshArgs {
    /// The key, or a version of it
    key: KeyRef,
    #[command(flatten)]
    ceremony: CeremonyArgs,
}

/// Options of `theta keys reshare`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys reshare files --threshold 3
  theta keys reshare files --threshold 2 --holders 2,3,4     node 1 leaves

The shares pass to these holders with this threshold; the public key stays. k of the old holders and the new ones take part. Old \
shares are destroyed: as many as the old threshold of them must not be kept by anybody.")]
pub(crate) struct ReshareArgs {
    /// The key, or a version of it
    key: KeyRef,
    #[command(flatten)]
    holders: HoldersArgs,
    #[command(flatten)]
    ceremony: CeremonyArgs,
}

/// `theta keys create`.
pub(super) fn create(args: &CreateArgs, output: Output) -> Result<(), Failure> {
    plan::check_names(&args.keys)?;
    args.delivery.check(&args.keys)?;
    let session = args.ceremony.open()?;
    let (k, holders) = args.holders.resolve(&session.client().group())?;
    // Refuses what the nodes would refuse, before the first key is made.
    let keys = args.delivery.of(&args.keys, plan::any_of(k, &holders)?)?;
    let mut made: Vec<Held> = Vec::new();
    for key in &keys {
        let (name, suite, holders) = (key.key_name().clone(), key.suite(), holders.clone());
        let change = KeyChange::Create { key: name, suite: suite.into(), delivery: key.delivery(), k, holders };
        match hold(&args.ceremony, &session, change) {
            Ok(held) => made.push(held),
            Err(failure) => {
                // Keys that were made before the failure stay.
                report(&made, output)?;
                return Err(failure);
            }
        }
    }
    note_of_slots(&session.client().group(), k, &keys);
    report(&made, output)
}

/// What a signing rule would mean for keys that have just been made.
fn note_of_slots(group: &GroupFile, k: u16, keys: &[KeySpec]) {
    let n = u16::try_from(group.nodes().len()).unwrap_or(u16::MAX);
    let quorum = SlotQuorum { n, t: k.max(group.threshold()).saturating_sub(1) };
    let takes_slots = |key: &KeySpec| key.suite().purpose() != Purpose::Decrypt;
    if let Some(warning) = quorum.warning().filter(|_| keys.iter().any(takes_slots)) {
        note(format_args!("note: {warning}"));
    }
}

/// `theta keys rotate`.
pub(super) fn rotate(args: &RotateArgs, output: Output) -> Result<(), Failure> {
    let KeyRef { name: key, version } = args.key.clone();
    if let Some(version) = version {
        return Err(Failure::Usage(format!("a key is rotated, not a version of it: leave out @{version}")));
    }
    let session = args.ceremony.open()?;
    warn_if_passive(&session, &args.key);
    report(&[hold(&args.ceremony, &session, KeyChange::Rotate { key })?], output)
}

/// `theta keys refresh`.
pub(super) fn refresh(args: &RefreshArgs, output: Output) -> Result<(), Failure> {
    let (key, version) = (args.key.name.clone(), args.key.version);
    single(&args.ceremony, KeyChange::Refresh { key, version }, output)
}

/// `theta keys reshare`.
pub(super) fn reshare(args: &ReshareArgs, output: Output) -> Result<(), Failure> {
    if !args.holders.is_given() {
        return Err(Failure::Usage(
            "say what is to change: --threshold, --holders or both; theta keys refresh changes the shares alone"
                .to_owned(),
        ));
    }
    let session = args.ceremony.open()?;
    let (k, holders) = args.holders.resolve(&session.client().group())?;
    warn_if_passive(&session, &args.key);
    let (key, version) = (args.key.name.clone(), args.key.version);
    report(&[hold(&args.ceremony, &session, KeyChange::Reshare { key, version, k, holders })?], output)
}

/// Says again what whoever made the key was told: those who hold it next may be others.
fn warn_if_passive(session: &Session, key: &KeyRef) {
    if let Some(delivery) = session.keyring().named(&key.to_string()).ok().and_then(|key| key.delivery) {
        warn_of_passive(key.name.as_str(), delivery);
    }
}

fn single(args: &CeremonyArgs, change: KeyChange, output: Output) -> Result<(), Failure> {
    let session = args.open()?;
    report(&[hold(args, &session, change)?], output)
}
