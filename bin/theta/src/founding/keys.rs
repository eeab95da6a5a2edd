//! The keys of a new node.

use std::path::Path;

use rand_core::CryptoRng;
use theta_ceremonies::CeremonyKeys;
use theta_groups::Secret;
use theta_ledger::founding::{Card, CardContent, NodeSignatures};
use theta_ledger::{OperatorId, OperatorKey};
use theta_names::{Address, NodeId, NodeName};
use theta_network::{Fingerprint, GeneratedIdentity, Identity, Subject};
use theta_service::NodeConfig;
use theta_store::Store;

use super::CARD;
use crate::{exit::Failure, files::write_new, vault};

/// How long a group may be put together with a card: 90 days, in seconds.
const CARD_LASTS: u64 = 90 * 24 * 60 * 60;

/// What a new node is called, and where it is reached.
pub(crate) struct About {
    pub(crate) name: NodeName,
    pub(crate) peer: Address,
    pub(crate) api: Address,
    /// Its number, where that is known already.
    pub(crate) number: Option<NodeId>,
}

/// All keys of a new node, before they are in its directory.
pub(crate) struct NodeKeys {
    identity: GeneratedIdentity,
    ceremonies: CeremonyKeys,
    /// A new one, unless the node's operator has one.
    operator: Option<OperatorKey>,
    card: Card,
}

impl NodeKeys {
    /// Makes them, and a key for the operator if none is given. `now` is in seconds since 1970.
    pub(crate) fn generate(
        about: About,
        operator: Option<OperatorId>,
        now: u64,
        rng: &mut dyn CryptoRng,
    ) -> Result<Self, Failure> {
        let subject = Subject::new(about.name.as_str()).map_err(Failure::internal)?;
        let subject = subject.at(about.api.host()).at(about.peer.host());
        let subject = match about.number {
            Some(number) => subject.at(&format!("node-{number}")),
            None => subject,
        };
        let identity = Identity::generate_for_a_year(&subject, now).map_err(Failure::internal)?;
        let ceremonies = CeremonyKeys::generate(any_node()?, rng);
        let (operator, id) = match operator {
            Some(known) => (None, known),
            None => {
                let mut master = Secret::new([0; 32]);
                rng.fill_bytes(master.expose_mut());
                let made = OperatorKey::new(master);
                let id = made.id().map_err(Failure::internal)?;
                (Some(made), id)
            }
        };
        let card = card(&ceremonies, about, (identity.fingerprint, id), now)?;
        Ok(Self { identity, ceremonies, operator, card })
    }

    /// What the node publishes.
    pub(crate) const fn card(&self) -> &Card {
        &self.card
    }

    /// Writes the operator's key, if it is new: it is not to be where the node is.
    pub(crate) fn write_operator(&self, file: &Path) -> Result<(), Failure> {
        match &self.operator {
            Some(key) => write_new(file, key.to_text().expose().as_bytes(), true),
            None => Ok(()),
        }
    }

    /// Writes keys and card into the node's directory, makes its store, and gives it with the key of ceremonies in it. Relative
    /// paths of the configuration are in that directory.
    pub(crate) fn write(&self, dir: &Path, mut config: NodeConfig) -> Result<Store, Failure> {
        write_new(&dir.join("node.crt"), self.identity.certificate_pem.as_bytes(), false)?;
        write_new(&dir.join("node.key"), self.identity.key_pem.as_bytes(), true)?;
        write_new(&dir.join(CARD), self.card.to_text().as_bytes(), false)?;
        config.resolve(dir);
        let store = vault::create(&config)?;
        store.set_identity(self.ceremonies.master())?;
        Ok(store)
    }
}

/// A key of ceremonies does not depend on the number of its node, which nobody knows before the group is put together.
fn any_node() -> Result<NodeId, Failure> {
    NodeId::try_from(1).map_err(Failure::internal)
}

/// The keys of ceremonies in a node's store.
pub(super) fn of_store(store: &Store) -> Result<CeremonyKeys, Failure> {
    let master = store.identity()?.ok_or_else(|| {
        Failure::Usage(format!("{} has no key of ceremonies: theta node init makes a node with one", store.place()))
    })?;
    Ok(CeremonyKeys::new(any_node()?, master))
}

/// The public key, as cards and group files have it.
pub(super) fn public(ceremonies: &CeremonyKeys) -> Result<[u8; 32], Failure> {
    let key = <[u8; 32]>::try_from(ceremonies.member().verifying_key().bytes());
    key.map_err(|_| Failure::internal("a key of ceremonies has another length"))
}

/// Signs what a node says of itself.
pub(super) fn card(
    ceremonies: &CeremonyKeys,
    about: About,
    (tls_key, operator_key): (Fingerprint, OperatorId),
    now: u64,
) -> Result<Card, Failure> {
    let content = CardContent {
        name: about.name,
        ceremony_key: public(ceremonies)?,
        tls_key: *tls_key.as_bytes(),
        operator_key,
        peer_address: about.peer,
        api_address: about.api,
        made: now,
        until: now.saturating_add(CARD_LASTS),
    };
    let signature = ceremonies.sign_transcript(&content.signed());
    content.with_signature(signature, &NodeSignatures).map_err(|error| Failure::Usage(error.to_string()))
}
