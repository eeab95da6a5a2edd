//! `theta keys restore`: a new store from a backup, which refuses what may have been used since the backup.

use std::{collections::BTreeMap, io::BufReader, path::PathBuf, str::FromStr};

use clap::Args;
use serde::Serialize;
use theta_service::config::{Sealing, StoreConfig};
use theta_statements::UnixTime;
use theta_store::{RestoreFloors, SealingKey, SlotRule, Store};

use super::{SEALING_HELP, SealWord, StoppedNode, make_key_file};
use crate::{
    exit::Failure,
    files::{DraftDirectory, Source},
    interrupt::{Unfinished, Whole},
    output::{self, Output},
};

const MILLISECONDS_OF_A_DAY: u64 = 86_400_000;
/// What the unfinished store is called in the directory of its draft.
const STORE: &str = "store";

/// Options of `theta keys restore`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys restore node-1.backup --dir theta-group/node-1 --seal file:backup.key \\
      --refuse-days-before tomorrow --refuse-other-slots 0
  theta keys restore node-1.backup --dir theta-group/node-1 --seal file:backup.key \\
      --refuse-days-before 2026-12-01 --refuse-slots chain/heights=48210 --refuse-other-slots 1000000

A restored node does not know what it did after the backup was made, so it must refuse whatever it may have done; only a \
person can say what that is, and there is no default:
  --refuse-days-before DAY     what must not happen twice is refused if it is of an earlier day: tomorrow, or later if the
                               clocks of clients may have been ahead
  --refuse-slots KEY/RULE=N    the highest slot that may have been signed for a key by a signing rule: it and all below
  --refuse-other-slots N       the same for all other rules; 0 if the policy never had any

The store that node.toml names must not exist: move the old one away. If a refresh was made since, the shares of the backup \
are worthless and the node recovers its share from the others: theta keys recover.

The node serves requests again at once. It votes on changes of keys and members when the others have decided one without it, since it may have voted \
and not know it. In a small group, such as 2 of 3, they cannot: then another machine takes its place (theta group warrant).")]
pub(crate) struct RestoreArgs {
    /// The backup; - for standard input
    file: PathBuf,
    #[command(flatten)]
    node: StoppedNode,
    #[arg(long, value_name = "SEALING", help = SEALING_HELP)]
    seal: SealWord,
    /// Refuse what must not happen twice if it is of an earlier day: tomorrow, or a date as 2026-11-22
    #[arg(long, value_name = "DAY")]
    refuse_days_before: Option<Day>,
    /// Refuse the slots up to this one for a key and a signing rule; may be given more than once
    #[arg(long, value_name = "KEY/RULE=SLOT")]
    refuse_slots: Vec<SlotFloor>,
    /// Refuse the slots up to this one for all other signing rules, those to come included
    #[arg(long, value_name = "SLOT")]
    refuse_other_slots: Option<u64>,
}

/// Days since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Day(u32);

impl FromStr for Day {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a day: write tomorrow, or a date such as 2026-11-22");
        let moment = match text {
            "tomorrow" => UnixTime::now().plus(MILLISECONDS_OF_A_DAY),
            date => format!("{date}T00:00:00Z").parse::<UnixTime>().map_err(|_| wrong())?,
        };
        u32::try_from(moment.0 / MILLISECONDS_OF_A_DAY).map(Self).map_err(|_| wrong())
    }
}

/// The highest slot for which a rule may have signed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SlotFloor(SlotRule, u64);

impl FromStr for SlotFloor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = || {
            let (rule, slot) = text.split_once('=')?;
            let (key, rule) = rule.split_once('/')?;
            let rule = SlotRule { key: key.parse().ok()?, rule: rule.parse().ok()? };
            Some(Self(rule, slot.parse().ok()?))
        };
        parsed().ok_or_else(|| format!("{text:?} is not a slot of a rule: write for example chain/heights=48210"))
    }
}

#[derive(Serialize)]
struct Restored {
    store: PathBuf,
    id: String,
    restored_from: Option<String>,
    keys: usize,
}

impl RestoreArgs {
    fn floors(&self) -> Result<RestoreFloors, Failure> {
        let (Some(Day(burn_day)), Some(other_slots)) = (self.refuse_days_before, self.refuse_other_slots) else {
            return Err(Failure::Usage(
                "a restored node must refuse what it may have done since the backup, and only you can say what that is: give \
                 --refuse-days-before DAY (tomorrow, if its clients' clocks are right) and --refuse-other-slots SLOT (the \
                 highest that may have been signed; 0 if the policy never had signing rules)"
                    .to_owned(),
            ));
        };
        let slots: BTreeMap<SlotRule, u64> =
            self.refuse_slots.iter().map(|SlotFloor(rule, slot)| (rule.clone(), *slot)).collect();
        if slots.len() != self.refuse_slots.len() {
            return Err(Failure::Usage("--refuse-slots names a rule of a key twice: name it once".to_owned()));
        }
        Ok(RestoreFloors { burn_day, slots, other_slots })
    }
}

/// `theta keys restore`.
pub(crate) fn restore(args: &RestoreArgs, output: Output) -> Result<(), Failure> {
    let floors = args.floors()?;
    let backup_key = args.seal.key()?;
    let config = args.node.config()?;
    let source = Source::open(&args.file)?;
    // A key that seals nothing would be left behind by what fails from here on.
    let new_key = match &config.store.sealing {
        // A link to what is not there now, such as a disk that is not mounted, is the operator's.
        Sealing::File(file) if file.symlink_metadata().is_err() => Some(file.clone()),
        _ => None,
    };
    let watched = new_key.as_deref().map(Unfinished::watch).transpose()?;
    let written = write(&config.store, source, &backup_key, &floors).and_then(|(restored, draft)| {
        // A signal must not take the key away from a store that is there.
        let _whole = Whole::begin()?;
        draft.keep_file(STORE)?;
        drop(watched);
        Ok(restored)
    });
    let restored = written.inspect_err(|_| {
        // The store may be in its place though it is not known to be durable.
        if let Some(file) = new_key.as_ref().filter(|_| !config.store.path.exists()) {
            drop(std::fs::remove_file(file));
        }
    })?;
    let summary = format!("restored {} keys to {}, as store {}", restored.keys, restored.store.display(), restored.id);
    output.remark(&restored, &summary)?;
    if !output.json() {
        output::note(
            "Its peers will notice that this is another store than they knew, and hear from it in whose place it stands. It votes on changes of \
             keys and members again when they have decided one without it; where all have to decide, as in 2 of 3, see theta group warrant.",
        );
    }
    Ok(())
}

/// Writes the store into a draft, as [`STORE`].
fn write(
    store: &StoreConfig,
    source: Source,
    backup_key: &SealingKey,
    floors: &RestoreFloors,
) -> Result<(Restored, DraftDirectory), Failure> {
    let path = &store.path;
    let draft = DraftDirectory::new(path, 0o700, "move the old one away")?;
    make_key_file(&store.sealing)?;
    let key = store.sealing.new_key()?;
    let made = Store::restore(BufReader::new(source.reader), backup_key, &draft.path().join(STORE), &key, floors)?;
    let restored = Restored {
        id: made.id().to_string(),
        restored_from: made.restored_from()?.map(|id| id.to_string()),
        keys: made.keys()?.len(),
        store: path.clone(),
    };
    drop(made);
    Ok((restored, draft))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_slots_are_read() {
        assert_eq!("1970-01-02".parse(), Ok(Day(1)));
        let today = u32::try_from(UnixTime::now().0 / MILLISECONDS_OF_A_DAY).unwrap();
        assert!("tomorrow".parse::<Day>().unwrap().0 > today);
        for bad in ["", "yesterday", "2026-13-01", "1.1.2026", "2026-11-22T00:00:00Z"] {
            assert!(bad.parse::<Day>().unwrap_err().contains("tomorrow"), "{bad}");
        }
        let SlotFloor(rule, slot) = "chain/heights=48210".parse().unwrap();
        assert_eq!((rule.key.as_str(), rule.rule.as_str(), slot), ("chain", "heights", 48_210));
        for bad in ["", "chain=1", "chain/heights", "chain/heights=-1", "Chain/x=1"] {
            assert!(bad.parse::<SlotFloor>().is_err(), "{bad}");
        }
    }
}
