//! What this node has seen of its peers' stores, so that it can tell after a restart of its own that one of them went back.

use crate::codec::{Decoder, Encoder};
use crate::database::{Rows, Table};
use crate::{Incarnation, Store, StoreError, Transaction};

impl Store {
    /// The highest incarnations that were remembered of peers, by number of the peer.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    pub fn seen_of_peers(&self) -> Result<Vec<(u16, Incarnation)>, StoreError> {
        let rows = self.snapshot()?.all(Table::Peers, b"")?;
        rows.iter().map(|(key, record)| decode(key, record.expose())).collect()
    }
}

impl Transaction<'_> {
    /// Remembers a peer's incarnation in place of the one before. Whether it follows is for the caller to have checked:
    /// [`crate::Witness`].
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn remember_peer(&mut self, peer: u16, seen: &Incarnation) -> Result<(), StoreError> {
        let record = Encoder::new(Incarnation::ENCODED_LEN).raw(&seen.encode()).finish();
        self.rows.put(Table::Peers, &peer.to_be_bytes(), record)
    }

    /// Forgets what was seen of a peer: a person said that its store is another on purpose.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn forget_peer(&mut self, peer: u16) -> Result<(), StoreError> {
        self.rows.remove(Table::Peers, &peer.to_be_bytes())
    }
}

fn decode(key: &[u8], record: &[u8]) -> Result<(u16, Incarnation), StoreError> {
    let mut decoder = Decoder::new(Table::Peers.name(), record)?;
    let peer = key.try_into().map(u16::from_be_bytes).map_err(|_| decoder.error("a key is not a peer"))?;
    let seen = decoder.take(Incarnation::ENCODED_LEN)?;
    let seen = Incarnation::decode(seen).ok_or_else(|| decoder.error("not an incarnation"))?;
    decoder.finish((peer, seen))
}
