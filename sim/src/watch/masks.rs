//! Checks whether honest helpers of a recovery answer requests in which their masks could cancel.
//!
//! Of the requests of one attempt that honest helpers answer, no two may list the same honest helper (`spec/ceremonies.md`,
//! One lost share). The check sees only the messages of honest nodes.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::Message as _;
use theta_ceremonies::{Digest, Kind, Statement, statements_of};
use theta_wire::peer::{CUSTODY, Envelope};

/// The bytes before the statements in a custodian's message: format, tag, the ceremony's id.
const HEAD: usize = 34;
/// The tag of statements in a custodian's message.
const ITEMS: u8 = 1;
/// The bytes of an entry in a list of masks: a helper and a digest.
const MASK_LEN: usize = 34;

/// An attempt of a recovery: the ceremony's id and the number of the attempt.
type Attempt = ([u8; 32], u32);

/// The requests that nodes have seen, and those that honest nodes have answered.
#[derive(Default)]
pub(crate) struct Masks {
    /// The helpers in each request.
    listed: BTreeMap<(Attempt, Digest), BTreeSet<u16>>,
    answered: BTreeMap<Attempt, BTreeSet<Digest>>,
}

impl Masks {
    /// A message arrives at an honest node.
    pub(crate) fn delivered(&mut self, bytes: &Bytes) {
        for (id, request) in statements(bytes).filter(|(_, said)| said.slot().kind == Kind::Request) {
            let helper = |mask: &[u8]| Some(u16::from_be_bytes(*mask.first_chunk::<2>()?));
            let helpers = request.body().chunks(MASK_LEN).filter_map(helper).collect();
            self.listed.insert(((id, request.slot().number), request.digest()), helpers);
        }
    }

    /// A message leaves an honest node. The error is an answer that the node should not have given. `honest` tells who is
    /// honest.
    pub(crate) fn sent(&mut self, node: u16, bytes: &Bytes, honest: impl Fn(u16) -> bool) -> Result<(), String> {
        for (id, answer) in statements(bytes).filter(|(_, said)| said.slot().kind == Kind::Answer) {
            let attempt = (id, answer.slot().number);
            let Some(request) = answer.body().first_chunk::<32>().filter(|_| answer.author().get() == node) else {
                continue;
            };
            let Some(listed) = self.listed.get(&(attempt, *request)) else {
                return Err(format!("node {node} answers a request that it has not seen"));
            };
            let answered = self.answered.entry(attempt).or_default();
            answered.insert(*request);
            for other in answered.iter().filter(|other| *other != request) {
                let others = self.listed.get(&(attempt, *other));
                let shared = others.and_then(|others| others.intersection(listed).find(|helper| honest(**helper)));
                if let Some(helper) = shared {
                    return Err(format!(
                        "the mask of node {helper} hides answers to two requests of attempt {}",
                        attempt.1
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The statements in a custodian's message, each with its ceremony.
fn statements(bytes: &Bytes) -> impl Iterator<Item = ([u8; 32], Statement)> + use<> {
    let envelope = Envelope::decode(bytes.clone()).ok().filter(|envelope| envelope.stream == CUSTODY);
    let parts = envelope.and_then(|envelope| {
        let (head, items) = envelope.payload.split_at_checked(HEAD)?;
        let [_, ITEMS, id @ ..] = head else { return None };
        Some((<[u8; 32]>::try_from(id).ok()?, statements_of(items)))
    });
    parts.into_iter().flat_map(|(id, said)| said.map(move |statement| (id, statement)))
}

#[cfg(test)]
mod tests {
    use theta_ceremonies::{CeremonyId, CeremonyKeys, StatementSlot, rewrite};
    use theta_groups::Secret;
    use theta_names::NodeId;

    use super::*;

    fn said(node: u16, kind: Kind, body: Vec<u8>) -> (Statement, Bytes) {
        let keys = CeremonyKeys::new(NodeId::try_from(node).unwrap(), Secret::new([7; 32]));
        let statement = Statement::sign(&CeremonyId::from_bytes([4; 32]), &keys, StatementSlot::new(kind, 0), body);
        // Kind of item, author, slot, body, signature.
        let mut item = [&[1][..], &node.to_be_bytes(), &[kind as u8, 0, 0, 0, 0]].concat();
        item.extend_from_slice(&u32::try_from(statement.body().len()).unwrap().to_be_bytes());
        item.extend_from_slice(statement.body());
        item.extend_from_slice(statement.signature());
        assert!(rewrite(&item, |statement| vec![statement]).is_some());
        let payload = [&[1, ITEMS][..], &[4; 32], &item].concat();
        let envelope = Envelope { stream: CUSTODY, payload: payload.into(), ..Default::default() };
        (statement, envelope.encode_to_vec().into())
    }

    fn request(helpers: &[u16]) -> (Statement, Bytes) {
        said(
            1,
            Kind::Request,
            helpers.iter().flat_map(|helper| [&helper.to_be_bytes()[..], &[9; 32]].concat()).collect(),
        )
    }

    #[test]
    fn answers_to_two_requests_with_one_mask_are_seen() {
        let mut masks = Masks::default();
        let requests = [request(&[2, 4]), request(&[3, 5]), request(&[2, 3, 4, 5])];
        requests.iter().for_each(|(_, bytes)| masks.delivered(bytes));
        let answer = |node, place: usize| said(node, Kind::Answer, requests[place].0.digest().to_vec()).1;
        masks.sent(2, &answer(2, 0), |_| true).unwrap();
        masks.sent(3, &answer(3, 1), |_| true).unwrap();
        masks.sent(4, &answer(4, 0), |_| true).unwrap();
        assert!(masks.sent(4, &answer(4, 2), |_| true).is_err());
        assert!(Masks::default().sent(2, &answer(2, 0), |_| true).is_err(), "it was never asked");
    }
}
