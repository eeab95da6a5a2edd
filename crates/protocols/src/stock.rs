//! What one party keeps in advance for one epoch of a key: the one place that stores it, bounds it, and wipes it.
//!
//! All instances of the key share it. Everything is in memory only and is dropped with the epoch: a party that restarts, from whatever
//! backup, has nothing from before; which sets of holders are in quarantine it is [told](Stock::knowing). What signs is taken out under a lock, so that of two instances that name the same only one finds it, on
//! whatever threads they come; the caller then records that it is used up, and only after that supplies it ([`Used`]).
//! See `docs/adr/0028-machines-and-stocks.md`.

use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use theta_rounds::PartyId;

use crate::ecdsa::{self, Elimination, Presignatures, Quarantine, Rehearsals, SetUps};
use crate::frost::{self, Shelves};
use crate::{Served, Supply, Used};

/// The material of one epoch of a key at one party, of whichever scheme the key has. It starts empty, and is wiped when it is dropped.
#[derive(Default)]
pub struct Stock(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    nonces: Shelves,
    presignatures: Presignatures,
    set_ups: Arc<SetUps>,
    elimination: Elimination,
    rehearsals: Rehearsals,
}

impl fmt::Debug for Stock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stock(<redacted>)")
    }
}

impl Stock {
    /// A stock of a party that knows of these sets of holders from before; and of the same cheats as a stock `before` it of the same shares, whose programs
    /// may run still.
    #[must_use]
    pub fn knowing(quarantined: impl IntoIterator<Item = Quarantine>, before: Option<&Self>) -> Self {
        let cheats = before.map(|before| before.set_ups().cheats().clone()).unwrap_or_default();
        let stock = Self(Mutex::new(Kept { set_ups: Arc::new(SetUps::knowing(&cheats)), ..Kept::default() }));
        for known in quarantined {
            let _ = stock.quarantine(known);
        }
        stock
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what a machine of FROST asks for.
    pub fn nonces(&self, ask: frost::Ask) -> Served<Supply, Used> {
        self.kept().nonces.serve(ask).map(Supply::Nonces, Used::Nonces)
    }

    /// Does what a machine of ECDSA asks for.
    pub fn presignatures(&self, ask: ecdsa::Ask) -> Served<Supply, Used, ecdsa::Ask> {
        if let ecdsa::Ask::Quarantine(found) = ask {
            let _ = self.quarantine(found);
            return Served::Done;
        }
        self.kept().presignatures.serve(ask).map(Supply::Presignature, Used::Presignature)
    }

    /// Notes that somebody cheated among these holders; what they have made is wiped. Returns whether that is news. From then on no request that begins
    /// makes a program with them.
    pub fn quarantine(&self, quarantine: Quarantine) -> bool {
        let mut kept = self.kept();
        kept.set_ups.wipe_of(&quarantine.holders);
        if let Some(cheat) = quarantine.party {
            kept.set_ups.wipe_with(cheat.share());
        }
        kept.presignatures.quarantine(quarantine)
    }

    /// The shares of all these signers made no signature, or these two say different things of a message. Returns who of them, or of those before them, must be a liar for that, if no more than `liars`
    /// parties are, and was not named before.
    pub fn spoiled(&self, local: PartyId, signers: &[PartyId], liars: u16) -> Vec<PartyId> {
        let others = signers.iter().copied().filter(|party| *party != local).collect();
        self.kept().elimination.note(others, liars.into())
    }

    /// How many commitments of peers wait: with as many of each, this party coordinates as many signatures of FROST in one round.
    #[must_use]
    pub fn commitments_ready(&self) -> usize {
        self.kept().nonces.ready()
    }

    /// How many presignatures wait: each serves one signature in one round. Those that their owners seem to lack are not counted.
    #[must_use]
    pub fn presignatures_ready(&self) -> usize {
        self.kept().presignatures.ready()
    }

    /// How many presignatures wait, with so many at most of each party that says what they sign, counted in the same way.
    #[must_use]
    pub fn presignatures_of_each(&self, most: usize) -> usize {
        self.kept().presignatures.ready_of_each(most)
    }

    /// Wipes presignatures that were made before this day, in days since 1970. Says whether there were any.
    pub fn wipe_before(&self, day: u32) -> bool {
        self.kept().presignatures.wipe_before(day)
    }

    /// What programs of a dishonest majority leave to later ones: handed to each machine, and wiped with the stock.
    #[must_use]
    pub fn set_ups(&self) -> Arc<SetUps> {
        Arc::clone(&self.kept().set_ups)
    }

    /// What programs that make presignatures for this stock are counted by: handed to each machine.
    #[must_use]
    pub fn making(&self) -> ecdsa::Making {
        self.kept().presignatures.making()
    }

    /// How often programs that failed are done again: handed to each machine.
    #[must_use]
    pub fn rehearsals(&self) -> Rehearsals {
        self.kept().rehearsals.clone()
    }

    /// How many presignatures wait of which this party says what they sign, counted in the same way.
    #[must_use]
    pub fn presignatures_of(&self, owner: PartyId) -> usize {
        self.kept().presignatures.owned_by(owner)
    }

    /// Holders that were in attempts which failed lately.
    #[must_use]
    pub fn doubted(&self) -> Vec<PartyId> {
        self.kept().presignatures.doubted()
    }

    /// Fillings by holders all of whom they take that have used what is hidden and not ended well, as when one fell silent; less one for each that did end
    /// well. Each may have told a cheat something, so who begins fillings waits the longer the more there are.
    #[must_use]
    pub fn unended(&self) -> u32 {
        self.kept().presignatures.unended()
    }

    /// The sets of holders in which somebody cheated: they make no programs with this one.
    #[must_use]
    pub fn quarantined(&self) -> Vec<Quarantine> {
        self.kept().presignatures.quarantined().to_vec()
    }
}
