//! Who may connect and speak: the members as they are now, by their keys.

use core::time::Duration;
use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
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
    places: Mutex<HashMap<Fingerprint, Places>>,
}

/// Where a member is.
#[derive(Debug)]
struct Places {
    /// As the group has it.
    address: String,
    /// What that was at the last look-up: those to which the name resolved, or the address itself.
    found: Vec<IpAddr>,
    /// From where it connected last. Not all members are dialled, and those that are not are not looked up.
    came: Option<IpAddr>,
}

impl Places {
    fn of(address: &str) -> Self {
        let found = address.parse().map(|address: SocketAddr| address.ip().to_canonical()).into_iter().collect();
        Self { address: address.to_owned(), found, came: None }
    }
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
        let mut places = self.places();
        let mut before = core::mem::take(&mut *places);
        for peer in &peers {
            let known = before.remove(&peer.certificate).filter(|places| places.address == peer.address);
            places.insert(peer.certificate, known.unwrap_or_else(|| Places::of(&peer.address)));
        }
        drop(places);
        let present = peers.into_iter().map(|peer| (peer.certificate, peer)).collect();
        *self.present.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Present(present));
    }

    /// A look-up of this member's address has found these.
    pub(crate) fn found(&self, member: &MeshPeer, addresses: &[SocketAddr]) {
        if let Some(places) = self.places().get_mut(&member.certificate).filter(|it| it.address == member.address) {
            places.found = addresses.iter().map(|address| address.ip().to_canonical()).collect();
        }
    }

    /// A member has connected from there, and proven that it is one.
    pub(crate) fn came(&self, member: &Fingerprint, from: IpAddr) {
        if let Some(places) = self.places().get_mut(member) {
            places.came = Some(from.to_canonical());
        }
    }

    /// Whether a member was at this address when it was last looked up, or connected.
    pub(crate) fn is_somebody_at(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.places().values().any(|places| places.found.contains(&address) || places.came == Some(address))
    }

    fn places(&self) -> MutexGuard<'_, HashMap<Fingerprint, Places>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn members_are_known_by_where_their_names_led_and_whence_they_came() {
        let members = Members::default();
        let member = |number: u8, address: &str| MeshPeer {
            id: NodeId::try_from(u16::from(number)).unwrap(),
            address: address.to_owned(),
            certificate: Fingerprint::from([number; 32]),
        };
        let (named, numbered) = (member(2, "beta.example:7210"), member(3, "10.0.0.3:7210"));
        members.replace(vec![named.clone(), numbered]);
        let at = |last: u8| IpAddr::from([10, 0, 0, last]);
        assert!(members.is_somebody_at(at(3)) && !members.is_somebody_at(at(2)));
        let mapped: SocketAddr = "[::ffff:10.0.0.2]:7210".parse().unwrap();
        members.found(&named, &[mapped]);
        assert!(members.is_somebody_at(at(2)));
        members.came(&named.certificate, at(9));
        members.came(&Fingerprint::from([4; 32]), at(8));
        assert!(members.is_somebody_at(at(9)) && !members.is_somebody_at(at(8)), "strangers do not become familiar");
        // Whoever stays where it was stays familiar; whoever moved is not known by where it was.
        members.replace(vec![named.clone()]);
        assert!(members.is_somebody_at(at(2)) && !members.is_somebody_at(at(3)));
        members.replace(vec![member(2, "gamma.example:7210")]);
        members.found(&named, &[mapped]);
        assert!(![2, 9].into_iter().any(|last| members.is_somebody_at(at(last))), "a late look-up of another address");
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
