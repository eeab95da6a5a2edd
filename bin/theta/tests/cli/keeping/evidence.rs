//! Lies in ceremonies, judged by somebody who did not take part.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use theta_ceremonies::{CeremonyId, CeremonyKeys, Kind, Statement, rewrite};
use theta_custody::{Custodian, CustodyEffect, CustodyInput, To};
use theta_names::{Delivery, NodeId};
use theta_network::group::GroupFile;
use theta_schemes::Suite;
use theta_statements::{CeremonyRequest, KeyChange};
use theta_store::{SealingKey, Store};

use crate::harness::Group;

/// The bytes before the statements: format, kind of message, ceremony.
const HEAD: usize = 2 + 32;
const LIAR: u16 = 2;

fn party(node: u16) -> NodeId {
    NodeId::try_from(node).unwrap()
}

/// The stores of a real group with their custodians. No node runs; the test passes the messages on.
struct Table {
    custodians: Vec<Custodian>,
    keys: CeremonyKeys,
    packets: VecDeque<(u16, u16, Bytes)>,
}

impl Table {
    fn new(group: &Group) -> Self {
        let file = GroupFile::load(&group.path().join("theta-group/client/group.toml")).unwrap();
        let roster = theta_service::roster(&file).unwrap();
        let stores: Vec<Arc<Store>> = (1..=4)
            .map(|node| {
                let dir = group.node_dir(node);
                let key = SealingKey::from_file(&dir.join("store.key")).unwrap();
                Arc::new(Store::open(&dir.join("theta.redb"), &key).unwrap())
            })
            .collect();
        let keys = CeremonyKeys::new(party(LIAR), stores[usize::from(LIAR) - 1].identity().unwrap().unwrap());
        let custodians = (1..=4)
            .zip(stores)
            .map(|(node, store)| Custodian::open(store, party(node), roster.clone()).unwrap())
            .collect();
        Self { custodians, keys, packets: VecDeque::new() }
    }

    fn deliver(&mut self, from: u16, effects: Vec<CustodyEffect>) {
        for effect in effects {
            let CustodyEffect::Send { to, bytes } = effect else { continue };
            let bytes = if from == LIAR { self.falsify(bytes) } else { bytes };
            let to: Vec<u16> = match to {
                To::One(node) => vec![node.get()],
                To::All => (1..=4).filter(|node| *node != from).collect(),
            };
            self.packets.extend(to.into_iter().map(|to| (from, to, bytes.clone())));
        }
    }

    /// The liar's dealing for node 4 contradicts its own commitments, under its signature.
    fn falsify(&self, bytes: Bytes) -> Bytes {
        let Some((head, items)) = bytes.split_at_checked(HEAD).filter(|(head, _)| head[1] == 1) else { return bytes };
        let ceremony = CeremonyId::from_bytes(head[2..].try_into().unwrap());
        let forged = rewrite(items, |statement| {
            if statement.author().node() != party(LIAR) || statement.slot().kind != Kind::Dealing {
                return vec![statement];
            }
            let mut body = statement.body().to_vec();
            let place = body.len() - 5;
            body[place] ^= 1;
            vec![Statement::sign(&ceremony, &self.keys, statement.slot(), body)]
        });
        forged.map_or(bytes.clone(), |forged| Bytes::from([head, &forged].concat()))
    }

    fn step(&mut self, node: u16, input: CustodyInput) {
        let effects = self.custodians[usize::from(node) - 1].handle(input);
        self.deliver(node, effects);
    }

    /// Makes a key and returns what an honest node reports against others.
    fn make_key(&mut self) -> Vec<(u16, Bytes)> {
        let change = KeyChange::Create {
            key: "vault".parse().unwrap(),
            suite: Suite::Cks05Ristretto255.into(),
            delivery: Delivery::All,
            k: 2,
            holders: vec![1, 2, 3, 4],
        };
        let request = CeremonyRequest { nonce: [7; 32], change };
        let mut id = [0; 32];
        for node in 1..=4 {
            let mut effects = Vec::new();
            id = self.custodians[usize::from(node) - 1].hold(request.clone(), Vec::new(), &mut effects).unwrap().id;
            self.deliver(node, effects);
        }
        for now in 1..60 {
            while let Some((from, to, bytes)) = self.packets.pop_front() {
                self.step(to, CustodyInput::Message { from: party(from), bytes });
            }
            (1..=4).for_each(|node| self.step(node, CustodyInput::Tick(now)));
        }
        let report = self.custodians[0].report(&id).unwrap();
        assert!(report.state.is_over(), "{report:?}");
        report.evidence.iter().map(|told| (told.culprit().get(), told.encode().into())).collect()
    }
}

#[test]
fn evidence_convinces_who_has_the_group_file_alone() {
    let group = Group::made_with(&["--no-keys"]);
    let evidence = Table::new(&group).make_key();
    assert!(!evidence.is_empty() && evidence.iter().all(|(node, _)| *node == LIAR), "{evidence:?}");
    let file = group.file("lie.evidence", &evidence[0].1);
    let proven = group.theta(&["keys", "check-evidence", &file, "--json"]).ok().json();
    assert_eq!((&proven["node"], &proven["aim"], &proven["key"]), (&LIAR.into(), &"create".into(), &"vault".into()));
    let text = group.theta(&["keys", "check-evidence", &file]).ok().text();
    assert!(text.contains("proven: node 2 lied"), "{text}");

    let mut altered = evidence[0].1.to_vec();
    *altered.last_mut().unwrap() ^= 1;
    let altered = group.file("altered.evidence", altered);
    assert_ne!(group.theta(&["keys", "check-evidence", &altered]).code, 0);
    let nothing = group.file("nothing.evidence", "he did it");
    group.theta(&["keys", "check-evidence", &nothing]).fails(2, &["nothing.evidence", "no evidence"]);
    let other = Group::made_with(&["--no-keys"]);
    other.file("lie.evidence", &evidence[0].1);
    other.theta(&["keys", "check-evidence", "lie.evidence"]).fails(1, &["lie.evidence"]);
}
