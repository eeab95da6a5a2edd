//! Nodes that lie, and third parties that judge the evidence.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use theta_ceremonies::{Aim, CeremonyEvidence, CeremonyId, CeremonyPlan, Kind, PlanParts, Statement, rewrite};
use theta_custody::{CustodyEffect, EvidenceError, check_evidence};
use theta_groups::Transcript;
use theta_names::{Delivery, Epoch};
use theta_rounds::{Evidence as _, PartyId};
use theta_schemes::Suite;
use theta_statements::KeyChange;

mod bounds;

use crate::net::{Liar, Net, keys_of, name, party, roster};
use crate::use_keys::check_signature;

/// The plan of a request for a new key, built by hand from `spec/ceremonies.md`.
pub(crate) fn plan(net: &mut Net, holders: &[u16]) -> (Arc<CeremonyPlan>, theta_statements::CeremonyRequest) {
    let change = KeyChange::Create {
        key: name("zone"),
        suite: Suite::Bls04MinPk.into(),
        delivery: Delivery::All,
        k: 2,
        holders: holders.to_vec(),
    };
    let request = net.request(change);
    let nonce = Transcript::new("theta/custody/ceremony/v1")
        .with("group", b"test group")
        .with("request", &request.digest())
        .with("version", &1_u32.to_be_bytes())
        .with("delivery", &[Delivery::All.code()])
        .finish32();
    let parts = PlanParts {
        suite: Suite::Bls04MinPk.into(),
        group: "bls12-381-g1",
        proof_of_possession: Suite::Bls04MinPk.proof_of_possession(),
        nonce,
        epoch: Epoch::FIRST,
        aim: Aim::Generate,
        k: 2,
        members: holders.iter().copied().map(party).map(PartyId::of_node).collect(),
        roster: holders.iter().map(|node| keys_of(*node).member().clone()).collect(),
        patience: 240,
    };
    (Arc::new(CeremonyPlan::new(parts).unwrap()), request)
}

/// The length of a message's head: format, tag of items, id. The items follow.
pub(crate) const HEAD: usize = 2 + 32;

/// Replaces a node's own statements of one kind.
pub(crate) fn liar(id: CeremonyId, node: u16, kind: Kind, forge: impl Fn(u16, Vec<u8>) -> Vec<u8> + 'static) -> Liar {
    Box::new(move |to, bytes: Bytes| {
        if bytes[1] != 1 || bytes[2..HEAD] != *id.as_bytes() {
            return vec![bytes];
        }
        let forged = rewrite(&bytes[HEAD..], |statement| {
            if statement.author().node() != party(node) || statement.slot().kind != kind {
                return vec![statement];
            }
            let body = forge(to, statement.body().to_vec());
            vec![Statement::sign(&id, &keys_of(node), statement.slot(), body)]
        });
        let forged = forged.unwrap();
        vec![Bytes::from([&bytes[..HEAD], &forged].concat())]
    })
}

/// Runs a ceremony for a new key in which node 2 lies; returns which nodes were named, and for what.
fn caught(seed: u64, kind: Kind, forge: impl Fn(u16, Vec<u8>) -> Vec<u8> + 'static) -> BTreeMap<u16, String> {
    let mut net = Net::new(2, 4, seed);
    let (plan, request) = plan(&mut net, &[1, 2, 3, 4]);
    net.liars.insert(2, liar(*plan.id(), 2, kind, forge));
    let id = net.ask(1..=4, &request);
    assert_eq!(id, request.digest());
    let honest = [1, 3, 4];
    assert!(net.until(60, |net| honest.iter().all(|node| net.state(*node, &id).is_over())));
    net.until(5, |_| false);
    check_signature(&net, &[1, 3], "zone", &net.entry(4, "zone").public);
    let mut caught = BTreeMap::new();
    for node in honest {
        let report = net.custodian(node).report(&id).unwrap();
        for told in &report.evidence {
            // The group file is enough to judge.
            let bytes = told.encode();
            let proven = check_evidence(&bytes, &roster(2, 4)).unwrap();
            assert_eq!((proven.ceremony, proven.aim, proven.key.as_str()), (id, "create", "zone"));
            assert_eq!((&proven.evidence, proven.evidence.culprit().node()), (told.evidence().unwrap(), party(2)));
            // The plan is enough, too: the ceremony's own evidence is at the end.
            let subject = u32::from_be_bytes(bytes[1..5].try_into().unwrap());
            let bare = &bytes[9 + usize::try_from(subject).unwrap()..];
            assert!(CeremonyEvidence::decode(bare).unwrap().verify(&plan));
            caught.insert(told.culprit().get(), told.evidence().unwrap().name().to_owned());
            check_that_nothing_else_is_proven(&bytes);
        }
        let culprits = net.nodes[&node].told.iter().filter_map(|effect| match effect {
            CustodyEffect::Culprit { node, ceremony, .. } if *ceremony == id => Some(node.get()),
            _ => None,
        });
        assert!(culprits.clone().all(|culprit| culprit == 2));
        assert_eq!(culprits.count() > 0, !report.evidence.is_empty());
    }
    caught
}

/// Checks that the evidence proves nothing to another group, nor with a byte changed.
fn check_that_nothing_else_is_proven(evidence: &[u8]) {
    let mut other = roster(2, 4);
    other.name = "another group".to_owned();
    assert_eq!(check_evidence(evidence, &other), Err(EvidenceError::Unproven));
    other = roster(2, 3);
    assert!(matches!(check_evidence(evidence, &other), Err(EvidenceError::Ceremony(_))));
    for place in (0..evidence.len()).step_by(41) {
        let mut changed = evidence.to_vec();
        changed[place] ^= 1;
        assert!(check_evidence(&changed, &roster(2, 4)).is_err(), "byte {place}");
    }
}

#[test]
fn a_false_dealing_is_proven() {
    // The last bytes are for the last member.
    let caught = caught(1, Kind::Dealing, |_, mut body| {
        let at = body.len() - 5;
        body[at] ^= 1;
        body
    });
    assert!(caught[&2].contains("false_dealing"), "{caught:?}");
}

#[test]
fn two_tales_are_proven() {
    let mut lies = Vec::new();
    // A node that has ended before the lie arrives does not notice it.
    for seed in 2..6 {
        let caught = caught(seed, Kind::Activation, |to, mut body| {
            let at = body.len() - 1;
            body[at] ^= u8::try_from(to).unwrap();
            body
        });
        lies.extend(caught.into_values());
    }
    assert!(!lies.is_empty());
    assert!(lies.iter().all(|lie| lie.contains("equivocation") || lie.contains("false_activation")), "{lies:?}");
}

#[test]
fn nonsense_is_proven() {
    let caught = caught(3, Kind::Dealing, |_, body| body[..body.len() / 2].to_vec());
    assert!(caught[&2].contains("malformed"), "{caught:?}");
}

/// Arbitrary bytes harm nobody.
#[test]
fn garbage_is_not_worth_an_answer() {
    let mut net = Net::new(2, 4, 4);
    let (_, request) = plan(&mut net, &[1, 2, 3, 4]);
    let id = request.digest();
    let mut turn = 0_u8;
    net.liars.insert(
        3,
        Box::new(move |_, bytes: Bytes| {
            turn = turn.wrapping_add(1);
            let mut changed = bytes.to_vec();
            let place = usize::from(turn) % changed.len();
            changed[place] ^= 1 << (turn % 8);
            vec![changed.into(), Bytes::from(vec![1; usize::from(turn)]), bytes.slice(..bytes.len() / 2)]
        }),
    );
    net.ask(1..=4, &request);
    assert!(net.until(60, |net| [1, 2, 4].iter().all(|node| net.state(*node, &id).is_over())));
    check_signature(&net, &[1, 4], "zone", &net.entry(2, "zone").public);
}
