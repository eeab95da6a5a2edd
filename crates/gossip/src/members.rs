//! Who may connect and speak: the members as they are now, by their keys.

use core::time::Duration;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::Instant,
};

use libp2p_identity::PeerId;
use theta_names::NodeId;
use theta_network::{Fingerprint, mesh::MeshPeer, tls::Admits};

/// How libp2p writes that a peer is named by a SHA-256 digest: the code of the hash and its length (multihash).
const SHA_256: [u8; 2] = [0x12, 32];

/// The name of a node in libp2p: the SHA-256 of the SubjectPublicKeyInfo that the group has pinned. Others derive names from another encoding of keys, and
/// never meet these.
pub(crate) fn peer_id(key: &Fingerprint) -> Option<PeerId> {
    PeerId::from_bytes(&[&SHA_256[..], key.as_bytes()].concat()).ok()
}

/// The key that a name in libp2p stands for.
pub(crate) fn key_of(peer: &PeerId) -> Option<Fingerprint> {
    let bytes = peer.to_bytes();
    let digest: [u8; 32] = bytes.strip_prefix(&SHA_256)?.try_into().ok()?;
    Some(Fingerprint::from(digest))
}

/// The members.
#[derive(Debug, Default)]
pub(crate) struct Members {
    present: RwLock<Arc<Present>>,
    banned: Mutex<HashMap<Fingerprint, Instant>>,
}

/// The members as they are between two changes.
#[derive(Debug, Default)]
pub(crate) struct Present(HashMap<Fingerprint, MeshPeer>);

impl Present {
    pub(crate) fn by_key(&self, key: &Fingerprint) -> Option<&MeshPeer> {
        self.0.get(key)
    }

    pub(crate) fn peers(&self) -> impl Iterator<Item = &MeshPeer> {
        self.0.values()
    }

    pub(crate) fn node(&self, peer: &PeerId) -> Option<NodeId> {
        Some(self.by_key(&key_of(peer)?)?.id)
    }

    /// With this node.
    pub(crate) fn count(&self) -> usize {
        self.0.len().saturating_add(1)
    }
}

impl Members {
    pub(crate) fn present(&self) -> Arc<Present> {
        Arc::clone(&self.present.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace(&self, peers: Vec<MeshPeer>) {
        let present = peers.into_iter().map(|peer| (peer.certificate, peer)).collect();
        *self.present.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Present(present));
    }

    /// Lets nobody with this key in for a while.
    pub(crate) fn ban(&self, key: Fingerprint, time: Duration) {
        let now = Instant::now();
        let mut banned = self.banned();
        // Members alone are banned, so that there are not many.
        banned.retain(|_, until| *until > now);
        if let Some(until) = now.checked_add(time) {
            banned.insert(key, until);
        }
    }

    pub(crate) fn is_banned(&self, key: &Fingerprint) -> bool {
        self.banned().get(key).is_some_and(|until| *until > Instant::now())
    }

    fn banned(&self) -> MutexGuard<'_, HashMap<Fingerprint, Instant>> {
        self.banned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admits for Members {
    fn admits(&self, certificate: &Fingerprint) -> bool {
        self.present().by_key(certificate).is_some() && !self.is_banned(certificate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_keys_stand_for_each_other() {
        let key = Fingerprint::from([7; 32]);
        assert_eq!(key_of(&peer_id(&key).unwrap()), Some(key));
        // A key of Ed25519 is its own name (multihash code 0), which no member has.
        let inlined = PeerId::from_bytes(&[&[0, 36, 8, 1, 18, 32][..], &[7; 32]].concat()).unwrap();
        assert_eq!(key_of(&inlined), None);
    }

    #[test]
    fn members_are_let_in_unless_they_were_left() {
        let (members, key) = (Members::default(), Fingerprint::from([7; 32]));
        assert!(!members.admits(&key));
        let peer = MeshPeer { id: NodeId::try_from(2).unwrap(), address: "localhost:1".to_owned(), certificate: key };
        members.replace(vec![peer]);
        assert!(members.admits(&key));
        members.ban(key, Duration::from_secs(60));
        assert!(!members.admits(&key));
        members.ban(key, Duration::ZERO);
        assert!(members.admits(&key));
    }
}
