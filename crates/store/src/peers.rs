//! What this node has seen of its peers' stores, and what they remember of its own store that it does not know. Both
//! are stored, so that after a restart the node still detects a peer that went back, and knows that its own store did.

use crate::codec::{Decoder, encoder};
use crate::database::{Rows, Settings, Table};
use crate::{Incarnation, Store, StoreError, Transaction, Witness};

/// An incarnation of this node's store that a peer remembers and that is not in its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// Which peer.
    pub peer: u16,
    /// What it remembers.
    pub claim: Incarnation,
    /// Whether a person has decided to trust the store all the same.
    pub overruled: bool,
}

impl Store {
    /// What was seen of peers' stores, by number of the peer.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn seen_of_peers(&self) -> Result<Vec<(u16, Witness)>, StoreError> {
        let rows = self.snapshot()?.all(Table::Peers, b"")?;
        rows.iter().map(|(key, record)| decode(key, record.expose())).collect()
    }

    /// What peers remember of this store that is not in its history, in order of their numbers.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn contradictions(&self) -> Result<Vec<Contradiction>, StoreError> {
        contradictions(&self.snapshot()?, b"")
    }

    /// Whether a person has decided to trust this opening before peers have confirmed it.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn is_opening_trusted(&self) -> Result<bool, StoreError> {
        Ok(Settings::trusted_opening(&self.snapshot()?)? == Some(self.incarnation().opening.generation))
    }
}

impl Transaction<'_> {
    /// Records what was seen of a peer's store, in place of what was recorded before. The caller's witness has checked
    /// that it follows. A witness that has seen nothing is not written.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn remember_peer(&mut self, peer: u16, witness: &Witness) -> Result<(), StoreError> {
        let Some(seen) = witness.remembered() else { return Ok(()) };
        let record = encoder(2 * Incarnation::ENCODED_LEN + 1).raw(&seen.encode());
        let record = record.option(witness.fork(), |record, fork| record.raw(&fork.encode())).finish();
        self.rows.put(Table::Peers, &peer.to_be_bytes(), record)
    }

    /// Forgets what was seen of a peer: a person has confirmed that its store was replaced on purpose.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn forget_peer(&mut self, peer: u16) -> Result<(), StoreError> {
        self.rows.remove(Table::Peers, &peer.to_be_bytes())
    }

    /// Records the incarnation by which a peer contradicts this store, in place of the one before; `None` if the peer
    /// agrees. Contradictions that a person has overruled stay; callers must not report such a claim again.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn remember_contradiction(&mut self, peer: u16, claim: Option<&Incarnation>) -> Result<(), StoreError> {
        for old in contradictions(&self.rows, &peer.to_be_bytes())? {
            if !old.overruled {
                self.rows.remove(Table::Contradictions, &contradiction_key(peer, &old.claim))?;
            }
        }
        claim.map_or(Ok(()), |claim| self.put_contradiction(&Contradiction { peer, claim: *claim, overruled: false }))
    }

    /// A person decides to trust this store: overrules all contradictions of peers so far, and trusts the opening of
    /// this generation before peers have confirmed it. Returns the contradictions that were overruled.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn trust_opening(&mut self, generation: u64) -> Result<Vec<Contradiction>, StoreError> {
        Settings::set_trusted_opening(&mut self.rows, generation)?;
        let standing: Vec<_> =
            contradictions(&self.rows, b"")?.into_iter().filter(|contradiction| !contradiction.overruled).collect();
        for contradiction in &standing {
            self.put_contradiction(&Contradiction { overruled: true, ..*contradiction })?;
        }
        Ok(standing)
    }

    fn put_contradiction(&mut self, contradiction: &Contradiction) -> Result<(), StoreError> {
        let Contradiction { peer, claim, overruled } = contradiction;
        let record = encoder(Incarnation::ENCODED_LEN + 1).raw(&claim.encode()).u8(u8::from(*overruled)).finish();
        self.rows.put(Table::Contradictions, &contradiction_key(*peer, claim), record)
    }
}

fn contradiction_key(peer: u16, claim: &Incarnation) -> Vec<u8> {
    [&peer.to_be_bytes()[..], &claim.opening.link].concat()
}

fn contradictions(rows: &impl Rows, prefix: &[u8]) -> Result<Vec<Contradiction>, StoreError> {
    let decode = |(key, record): &(Vec<u8>, theta_groups::Secret<Vec<u8>>)| {
        let mut decoder = Decoder::new(Table::Contradictions.name(), record.expose())?;
        let (peer, _) = key.split_first_chunk().ok_or_else(|| decoder.error("a key is not a peer and a link"))?;
        let claim = incarnation(&mut decoder)?;
        let overruled = match decoder.u8()? {
            0 => false,
            1 => true,
            _ => return Err(decoder.error("a flag is neither 0 nor 1")),
        };
        decoder.finish(Contradiction { peer: u16::from_be_bytes(*peer), claim, overruled })
    };
    rows.all(Table::Contradictions, prefix)?.iter().map(decode).collect()
}

fn incarnation(decoder: &mut Decoder<'_>) -> Result<Incarnation, StoreError> {
    let seen = decoder.take(Incarnation::ENCODED_LEN)?;
    Incarnation::decode(seen).ok_or_else(|| decoder.error("not an incarnation"))
}

fn decode(key: &[u8], record: &[u8]) -> Result<(u16, Witness), StoreError> {
    let mut decoder = Decoder::new(Table::Peers.name(), record)?;
    let peer = key.try_into().map(u16::from_be_bytes).map_err(|_| decoder.error("a key is not a peer"))?;
    let seen = incarnation(&mut decoder)?;
    let fork = decoder.option(incarnation)?;
    decoder.finish((peer, Witness::new(Some(seen), fork)))
}
