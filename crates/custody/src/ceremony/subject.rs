//! The subject of a ceremony: all that a node needs to join unasked, and a third party to judge.

use std::sync::Arc;

use theta_ceremonies::{Aim, CeremonyMember, CeremonyPlan, EncodedKey, PlanParts, Source};
use theta_groups::Transcript;
use theta_ledger::Begun;
use theta_names::{Delivery, Epoch, Holders, NodeId, ShareIndex, Version};
use theta_rounds::{Malformed, PartyId};
use theta_schemes::keys::{AnyPublicKey, KeyName};
use theta_schemes::{Suite, UnfitThreshold};
use theta_sharing::Threshold;
use theta_statements::{CeremonyRequest, KeyChange};

use crate::CeremonyError;
use crate::codec::{Reader, Writer, parties};
use crate::request::{CeremonyReport, CeremonyState, SUBJECT_FORMAT};

/// The number of ticks after which a node that sees no decision votes to abort a ceremony.
const PATIENCE: u32 = 240;

/// An existing key and the nodes that hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceKey {
    pub(crate) public: AnyPublicKey,
    pub(crate) holders: Vec<u16>,
}

/// A request, with everything that follows from the existing keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) request: CeremonyRequest,
    pub(crate) version: Version,
    /// The epoch of the sharing that is made, or whose share is recovered.
    pub(crate) epoch: Epoch,
    pub(crate) suite: Suite,
    /// Who makes shares of the key for a request.
    pub(crate) delivery: Delivery,
    /// The k of the holders afterwards.
    pub(crate) k: u16,
    pub(crate) holders: Vec<u16>,
    pub(crate) source: Option<SourceKey>,
}

impl Subject {
    /// What a request comes to at its place in the ledger.
    ///
    /// # Errors
    /// [`CeremonyError`]: ceremonies make no such keys, this build does not have the suite, or the suite not the delivery or the
    /// threshold.
    pub(crate) fn of_begun(begun: &Begun) -> Result<Self, CeremonyError> {
        let suite: Suite = begun.suite.as_str().parse().map_err(CeremonyError::UnknownSuite)?;
        if suite.key_group().is_none() {
            return Err(CeremonyError::TakesDealer(suite));
        }
        suite.check_delivery(begun.delivery)?;
        check_threshold(suite, begun.delivery, begun.k, &begun.holders)?;
        let source = begun.source.as_ref().map(|source| {
            let unreadable = |_| CeremonyError::Refused("the key in the ledger cannot be read".to_owned());
            let public = public_of(&source.public).map_err(unreadable)?;
            Ok::<_, CeremonyError>(SourceKey { public, holders: source.holders.clone() })
        });
        let Begun { request, version, epoch, delivery, k, holders, .. } = begun.clone();
        Ok(Self { request, version, epoch, suite, delivery, k, holders, source: source.transpose()? })
    }

    /// The state of its ceremony.
    pub(crate) fn report(&self, id: [u8; 32], state: CeremonyState, awaits: &'static str) -> CeremonyReport {
        let (key, aim) = (self.request.change.key().clone(), self.request.change.aim());
        let (evidence, silent) = (Vec::new(), Vec::new());
        let (version, epoch) = (self.version, self.epoch);
        CeremonyReport { id, key, version, epoch, aim, state, evidence, silent, awaits, request: None }
    }

    /// Whether the nodes of the source keep their sharing.
    pub(crate) const fn is_recovery(&self) -> bool {
        matches!(self.request.change, KeyChange::Recover { .. })
    }

    /// The key, version and sharing that it is about.
    pub(crate) const fn about(&self) -> (&KeyName, Version, Epoch) {
        (self.request.change.key(), self.version, self.epoch)
    }

    /// All nodes that take part.
    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        let before = self.source.as_ref().map_or(&[][..], |source| &source.holders);
        let mut nodes = parties(&[&self.holders, before].concat());
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        Writer::new(SUBJECT_FORMAT)
            .raw(&self.request.nonce)
            .bytes(&self.request.change.encode())
            .version(self.version)
            .short_epoch(self.epoch)
            .word(self.suite.name())
            .delivery(self.delivery)
            .u16(self.k)
            .nodes(&self.holders)
            .option(self.source.as_ref(), |writer, source| {
                let public = source.public.encoded().map_or_else(Vec::new, |public| public.encode());
                writer.nodes(&source.holders).bytes(&public)
            })
            .finish()
    }

    /// Reads what [`Subject::encode`] wrote, and checks everything in it that the request determines.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != SUBJECT_FORMAT {
            return Err(Malformed("a ceremony in a format of another release"));
        }
        let nonce = reader.array()?;
        let change = KeyChange::decode(reader.bytes()?)?;
        let (version, epoch) = (reader.version()?, reader.short_epoch()?);
        let suite: Suite = reader.word()?.parse().map_err(|_| Malformed("a suite is not known"))?;
        let (delivery, k, holders) = (reader.delivery()?, reader.u16()?, reader.nodes()?);
        let source = reader.option(|reader| {
            let holders = reader.nodes()?;
            let public = EncodedKey::decode(reader.bytes()?)?;
            let public = AnyPublicKey::from_encoded(suite, &public).map_err(|_| Malformed("not a public key"))?;
            Ok::<_, Malformed>(SourceKey { public, holders })
        })?;
        let request = CeremonyRequest { nonce, change };
        let subject = reader.end(Self { request, version, epoch, suite, delivery, k, holders, source })?;
        if subject.is_consistent() { Ok(subject) } else { Err(Malformed("it does not follow from the request")) }
    }

    fn is_consistent(&self) -> bool {
        let Self { version, epoch, suite, delivery, k, holders, source, .. } = self;
        let change = &self.request.change;
        let kept = |source: &SourceKey| *k == source.public.threshold().k() && *holders == source.holders;
        let renewed = *epoch > Epoch::FIRST;
        let of_change = match (change, source) {
            (KeyChange::Create { suite: s, delivery: d, k: asked, holders: listed, .. }, None) => {
                suite.name() == s.as_str()
                    && delivery == d
                    && k == asked
                    && holders == listed
                    && (*version, *epoch) == (Version::FIRST, Epoch::FIRST)
            }
            (KeyChange::Rotate { .. }, None) => *version > Version::FIRST && !renewed,
            (KeyChange::Refresh { .. }, Some(source)) => kept(source) && renewed,
            (KeyChange::Reshare { k: asked, holders: listed, .. }, Some(_)) => {
                k == asked && holders == listed && renewed
            }
            (KeyChange::Recover { node, .. }, Some(source)) => kept(source) && holders.contains(node),
            _ => false,
        };
        let is_fit_threshold = check_threshold(*suite, *delivery, *k, holders).is_ok();
        suite.supports(*delivery)
            && is_fit_threshold
            && of_change
            && change.version().is_none_or(|named| named == *version)
    }

    /// The index of a holder's share.
    fn index_of(&self, node: u16) -> Option<ShareIndex> {
        let holders = self.holders.iter().map(|holder| NodeId::try_from(*holder).ok()).collect::<Option<_>>()?;
        Holders::new(holders).ok()?.index_of(NodeId::try_from(node).ok()?)
    }

    /// What all parties agree on beforehand. Its id is a hash of the whole subject and of the identities. `group` is the group's name.
    ///
    /// # Errors
    /// [`CeremonyError`] if there can be no such ceremony in this group.
    pub(crate) fn plan(&self, group: &str, members: &[CeremonyMember]) -> Result<Arc<CeremonyPlan>, CeremonyError> {
        let change = &self.request.change;
        let no_curve = CeremonyError::TakesDealer(self.suite);
        let key_group = self.suite.key_group().ok_or(no_curve)?;
        let source = self.source.as_ref().and_then(|source| {
            let public = Arc::new(source.public.encoded()?);
            Some(Source { public, holders: ceremony_parties(&source.holders) })
        });
        let aim = match (change, source) {
            (KeyChange::Recover { node, .. }, Some(source)) => {
                let lost = CeremonyError::NotHolder { node: *node, name: change.key().to_string() };
                Aim::Recover(source, self.index_of(*node).ok_or(lost)?)
            }
            (_, Some(source)) => Aim::Reshare(source),
            (_, None) => Aim::Generate,
        };
        let identity = |node: NodeId| {
            let member = members.iter().find(|member| member.node() == node);
            member.cloned().ok_or(CeremonyError::NoCeremonyKey(node))
        };
        let nonce = Transcript::new("theta/custody/ceremony/v1")
            .with("group", group.as_bytes())
            .with("request", &self.request.digest())
            .with("version", &self.version.to_be_bytes())
            .with("delivery", &[self.delivery.code()])
            .finish32();
        let parts = PlanParts {
            suite: self.suite.into(),
            group: key_group,
            proof_of_possession: self.suite.proof_of_possession(),
            nonce,
            epoch: self.epoch,
            aim,
            k: self.k,
            members: ceremony_parties(&self.holders),
            roster: self.nodes().into_iter().map(identity).collect::<Result<_, _>>()?,
            patience: PATIENCE,
        };
        Ok(Arc::new(CeremonyPlan::new(parts)?))
    }
}

/// Refuses a k and holders that keys of the suite cannot have. Numbers that make no threshold at all are the plan's to refuse.
fn check_threshold(suite: Suite, delivery: Delivery, k: u16, holders: &[u16]) -> Result<(), UnfitThreshold> {
    let n = u16::try_from(holders.len()).unwrap_or(u16::MAX);
    Threshold::new(k, n).map_or(Ok(()), |threshold| suite.check_threshold(threshold, delivery))
}

/// Nodes, as the parties of a ceremony.
fn ceremony_parties(nodes: &[u16]) -> Vec<PartyId> {
    parties(nodes).into_iter().map(PartyId::of_node).collect()
}

/// A key's public part, as the ledger has it.
pub(crate) fn public_of(bytes: &[u8]) -> Result<AnyPublicKey, Malformed> {
    AnyPublicKey::from_bytes(bytes).map_err(|_| Malformed("not the public part of a key"))
}
