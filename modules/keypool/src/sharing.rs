//! Who has to hold a key of a pool, so that it is given to hosts.
//!
//! A name is no proof. Whoever has a host's client for a moment can make keys with names of its pool, and name holders and thresholds as it
//! pleases: one node alone would have such a key. So a key is given only if it is shared as the group shares its own keys.

use std::collections::{BTreeSet, HashMap};

use theta_names::{Delivery, NodeId};
use theta_schemes::{Suite, UnfitThreshold, keys::AnyPublicKey};
use theta_sharing::Threshold;

use crate::Security;

/// How a key is shared among nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sharing {
    /// How many holders it takes.
    pub k: u16,
    /// The nodes that hold shares.
    pub holders: BTreeSet<NodeId>,
    /// Who makes shares for a request.
    pub delivery: Delivery,
}

impl Sharing {
    /// A key's, as a node tells it; `None` if those are no holders or there is no such delivery.
    #[must_use]
    pub fn told(k: u32, holders: &[u32], delivery: &str) -> Option<Self> {
        let node = |number: &u32| NodeId::try_from(u16::try_from(*number).ok()?).ok();
        let holders = holders.iter().map(node).collect::<Option<_>>()?;
        Some(Self { k: u16::try_from(k).ok()?, holders, delivery: delivery.parse().ok()? })
    }
}

/// What nodes tell of how one key is shared: each may tell something else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told(HashMap<Option<Sharing>, BTreeSet<NodeId>>);

impl Told {
    /// These nodes tell this.
    pub fn add(&mut self, sharing: Option<Sharing>, nodes: impl IntoIterator<Item = NodeId>) {
        self.0.entry(sharing).or_default().extend(nodes);
    }

    /// What so many tell alike that one of them is honest, unless so many tell two things.
    #[must_use]
    pub fn agreed(self, quorum: usize) -> Option<Sharing> {
        let mut agreed = self.0.into_iter().filter(|(_, nodes)| nodes.len() >= quorum).map(|(sharing, _)| sharing);
        agreed.next().filter(|_| agreed.next().is_none())?
    }
}

/// The members of a group, as they share its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// How many of them sign.
    pub k: u16,
    /// All of them.
    pub nodes: BTreeSet<NodeId>,
}

/// Why a key with a name of a pool is not given to hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Its name says something else.
    #[error("it is a key of {0}, and its name says something else")]
    Suite(Suite),
    /// Nobody knows who could sign with it alone.
    #[error("its nodes do not tell alike how it is shared")]
    Untold,
    /// Fewer nodes than the group demands could sign with it.
    #[error("{is} of its holders sign with it, and the group takes {least}")]
    Threshold {
        /// The key's k.
        is: u16,
        /// The group's.
        least: u16,
    },
    /// Other nodes hold it than the members, or some of them do not.
    #[error(
        "not exactly the members of the group hold it; if these have changed since, theta keys reshare makes it theirs"
    )]
    Holders,
    /// A holder that lies may learn it, or may not, and the configuration says otherwise.
    #[error("it has {is} security, and the configuration says {configured}{}", weakness(*.is))]
    Security {
        /// The key's.
        is: Security,
        /// That of keys of the pool.
        configured: Security,
    },
    /// Its holders compute with each other otherwise than they should.
    #[error("its delivery is {is}, and k and n imply {implied}")]
    Delivery {
        /// The key's.
        is: Delivery,
        /// That of keys of the pool.
        implied: Delivery,
    },
}

/// What comes with passive security.
const fn weakness(is: Security) -> &'static str {
    match is {
        Security::Active => "",
        Security::Passive => ": a holder that does not follow the protocol may learn it",
    }
}

/// The group has no key of that suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSharing {
    /// k and n are no threshold.
    #[error("the group takes more of its nodes than it has")]
    Group,
    /// They are none for this suite.
    #[error(transparent)]
    Suite(#[from] UnfitThreshold),
}

impl Members {
    /// These nodes, of which so many sign.
    pub fn new(k: u16, nodes: impl IntoIterator<Item = NodeId>) -> Self {
        Self { k, nodes: nodes.into_iter().collect() }
    }

    fn threshold(&self, k: u16) -> Option<Threshold> {
        Threshold::new(k, u16::try_from(self.nodes.len()).ok()?).ok()
    }

    /// How the group shares a new key of a pool with this security among its members.
    ///
    /// # Errors
    /// [`NoSharing`].
    pub fn share(&self, suite: Suite, security: Security) -> Result<Sharing, NoSharing> {
        let threshold = self.threshold(self.k).ok_or(NoSharing::Group)?;
        let delivery = suite.implied_delivery(security.asked(suite), threshold);
        suite.check_threshold(threshold, delivery)?;
        Ok(Sharing { k: self.k, holders: self.nodes.clone(), delivery })
    }

    /// Whether a key whose name says that it is of this suite may be given to a host: it is what its name says, all members hold it and no
    /// others, no fewer of them sign with it than with the group's own keys, it has this security, and their delivery is the one that k and n
    /// imply then.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn check(
        &self,
        named: Suite,
        security: Security,
        public: &AnyPublicKey,
        sharing: Option<&Sharing>,
    ) -> Result<(), Unfit> {
        if public.suite() != named {
            return Err(Unfit::Suite(public.suite()));
        }
        let Sharing { k, holders, delivery } = sharing.ok_or(Unfit::Untold)?;
        // The key itself is believed for its own threshold: it has the verification keys of a sharing.
        let is = public.threshold().k().min(*k);
        if is < self.k {
            return Err(Unfit::Threshold { is, least: self.k });
        }
        if *holders != self.nodes {
            return Err(Unfit::Holders);
        }
        let threshold = self.threshold(*k).ok_or(Unfit::Holders)?;
        let implied = named.implied_delivery(security.asked(named), threshold);
        if delivery.is_passive() != implied.is_passive() {
            let is = if delivery.is_passive() { Security::Passive } else { Security::Active };
            return Err(Unfit::Security { is, configured: security });
        }
        if *delivery == implied { Ok(()) } else { Err(Unfit::Delivery { is: *delivery, implied }) }
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng as _};
    use theta_schemes::keys::deal_any;

    use super::*;

    fn key(suite: Suite, k: u16, n: u16) -> AnyPublicKey {
        deal_any(suite, Threshold::new(k, n).unwrap(), &mut ChaCha20Rng::from_seed([7; 32])).0
    }

    fn told(k: u32, holders: &[u32], delivery: Delivery) -> Option<Sharing> {
        Sharing::told(k, holders, delivery.name())
    }

    #[test]
    fn a_key_is_fit_only_as_the_group_shares_its_own() {
        let members = Members::new(2, (1..=4).map(|node| NodeId::try_from(node).unwrap()));
        let (ed, p256) = (Suite::FrostEd25519, Suite::EcdsaP256);
        let all = &[1, 2, 3, 4][..];
        for (named, (is, k), holders, delivery, expected) in [
            (ed, (ed, 2), all, Delivery::All, Ok(())),
            (ed, (ed, 3), all, Delivery::All, Ok(())),
            (p256, (p256, 2), all, Delivery::All, Ok(())),
            (p256, (p256, 4), all, Delivery::DishonestMajority, Ok(())),
            (p256, (ed, 2), all, Delivery::All, Err(Unfit::Suite(ed))),
            (ed, (ed, 1), all, Delivery::All, Err(Unfit::Threshold { is: 1, least: 2 })),
            (ed, (ed, 2), &[1, 2], Delivery::All, Err(Unfit::Holders)),
            (ed, (ed, 2), &[1, 2, 3, 5], Delivery::All, Err(Unfit::Holders)),
            (ed, (ed, 2), &[1, 2, 3, 4, 5], Delivery::All, Err(Unfit::Holders)),
            (p256, (p256, 2), all, Delivery::Passive, Err(PLANTED)),
            (p256, (p256, 4), all, Delivery::PassiveDishonestMajority, Err(PLANTED)),
            (p256, (p256, 4), all, Delivery::All, Err(Unfit::Delivery { is: Delivery::All, implied: DISHONEST })),
        ] {
            let (public, sharing) = (key(is, k, 4), told(k.into(), holders, delivery));
            let checked = members.check(named, Security::Active, &public, sharing.as_ref());
            assert_eq!(checked, expected, "{named}: {sharing:?}");
        }
        // Whatever nodes tell, the key takes one of them.
        let lie = told(2, all, Delivery::All);
        let expected = Err(Unfit::Threshold { is: 1, least: 2 });
        assert_eq!(members.check(ed, Security::Active, &key(ed, 1, 4), lie.as_ref()), expected);
        assert_eq!(members.check(ed, Security::Active, &key(ed, 2, 4), None), Err(Unfit::Untold));
    }

    const DISHONEST: Delivery = Delivery::DishonestMajority;
    const PLANTED: Unfit = Unfit::Security { is: Security::Passive, configured: Security::Active };

    /// Where the configuration says passive, keys of ECDSA have that, and others are what they are anyway.
    #[test]
    fn a_passive_pool_has_passive_keys() {
        let members = Members::new(2, (1..=4).map(|node| NodeId::try_from(node).unwrap()));
        let (ed, p256, all) = (Suite::FrostEd25519, Suite::EcdsaP256, &[1, 2, 3, 4][..]);
        let active = Unfit::Security { is: Security::Active, configured: Security::Passive };
        let implied = Delivery::PassiveDishonestMajority;
        for (suite, k, delivery, expected) in [
            (p256, 2, Delivery::Passive, Ok(())),
            (p256, 4, implied, Ok(())),
            (p256, 2, Delivery::All, Err(active)),
            (p256, 4, DISHONEST, Err(active)),
            (p256, 4, Delivery::Passive, Err(Unfit::Delivery { is: Delivery::Passive, implied })),
            (ed, 2, Delivery::All, Ok(())),
        ] {
            let (public, sharing) = (key(suite, k, 4), told(k.into(), all, delivery));
            let checked = members.check(suite, Security::Passive, &public, sharing.as_ref());
            assert_eq!(checked, expected, "{suite}: {sharing:?}");
        }
        let shared = |suite| members.share(suite, Security::Passive).map(|sharing| sharing.delivery);
        assert_eq!((shared(p256), shared(ed)), (Ok(Delivery::Passive), Ok(Delivery::All)));
        let words = PLANTED.to_string();
        assert!(
            words.contains("passive security, and the configuration says active: a holder that does not"),
            "{words}"
        );
    }

    #[test]
    fn new_keys_are_shared_among_all_with_the_implied_delivery() {
        let nodes = |n| (1..=n).map(|node| NodeId::try_from(node).unwrap());
        let shared = |k, n| Members::new(k, nodes(n)).share(Suite::EcdsaP256, Security::Active);
        let delivery = |k, n| shared(k, n).map(|sharing| sharing.delivery);
        assert_eq!(delivery(2, 2), Ok(Delivery::DishonestMajority));
        assert_eq!(delivery(3, 3), Ok(Delivery::DishonestMajority));
        assert_eq!(delivery(2, 4), Ok(Delivery::All));
        assert!(matches!(delivery(1, 4), Err(NoSharing::Suite(_))));
        assert_eq!(delivery(3, 2), Err(NoSharing::Group));
    }

    #[test]
    fn of_two_sharings_that_quorums_tell_none_is_believed() {
        let [one, two] = [1, 2].map(|k| told(k, &[1, 2, 3, 4], Delivery::All));
        let nodes = |numbers: &[u16]| numbers.iter().map(|node| NodeId::try_from(*node).unwrap()).collect::<Vec<_>>();
        let mut told = Told::default();
        told.add(two.clone(), nodes(&[1, 2]));
        told.add(one.clone(), nodes(&[3]));
        assert_eq!(told.clone().agreed(2), two);
        told.add(one, nodes(&[4]));
        assert_eq!(told.agreed(2), None);
    }
}
