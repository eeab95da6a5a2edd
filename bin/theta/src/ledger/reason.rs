//! By whose word the group decided an entry.

use serde::Serialize;
use theta_ledger::{Action, Entry, MemberChange, Warrant};
use theta_names::codec::Reader;
use theta_names::{KeyState, Operation};
use theta_statements::{Approval, Digest, MemberRequest, SignedRequest};

use crate::connect;

/// How many characters of a key a table shows: the algorithm and eight digits.
const SHORT: usize = 16;

/// What an entry says of why it was decided. Its proposer wrote down what the client signed, and nobody voted by it; what counts are the
/// consents, which everybody checks.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Reason {
    /// The key that signed the request for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_by: Option<String>,
    /// The keys of those who approved that request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    approved_by: Vec<String>,
    /// What it proves itself by: `card`, `operator` or `warrant`.
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<&'static str>,
    /// The nodes that consented, each by its own policy.
    consents: Vec<u16>,
}

impl Reason {
    /// Reads it for an entry of this group. What is about something else, is signed falsely or cannot be read is left out.
    pub(super) fn of(entry: &Entry, group: &str) -> Self {
        let consents = entry.consents.iter().map(|consent| consent.node.get()).collect();
        let proof = proof(entry);
        let signed = if proof.is_none() { signers(entry, group) } else { None };
        let (asked_by, approved_by) = signed.unwrap_or_default();
        Self { asked_by, approved_by, proof, consents }
    }

    /// "asked by ed25519:3b6a27bc, approved by ed25519:d75a9801, nodes 1 and 3 consent".
    pub(super) fn in_words(&self) -> String {
        let short = |key: &String| key.get(..SHORT).unwrap_or(key).to_owned();
        let mut said = Vec::new();
        said.extend(self.asked_by.as_ref().map(|key| format!("asked by {}", short(key))));
        if !self.approved_by.is_empty() {
            said.push(format!("approved by {}", self.approved_by.iter().map(short).collect::<Vec<_>>().join(" and ")));
        }
        said.extend(self.proof.map(|proof| match proof {
            "card" => "by the member's own card".to_owned(),
            "operator" => "by its operator's signature".to_owned(),
            _ => "by a warrant of the operators".to_owned(),
        }));
        if let [node] = self.consents.as_slice() {
            said.push(format!("node {node} consents"));
        } else if !self.consents.is_empty() {
            said.push(format!("{} consent", connect::nodes(&self.consents)));
        }
        if said.is_empty() { "-".to_owned() } else { said.join(", ") }
    }
}

/// What a change of the members proves itself by.
fn proof(entry: &Entry) -> Option<&'static str> {
    let Action::Members(change) = &entry.action else { return None };
    match change {
        MemberChange::Renew { .. } => Some("card"),
        MemberChange::Replace { .. } if Warrant::decode(&entry.reason).is_ok() => Some("warrant"),
        MemberChange::Replace { .. } if change.claims_proof(&entry.reason) => Some("operator"),
        MemberChange::Replace { .. } | MemberChange::Add(_) | MemberChange::Remove { .. } => None,
    }
}

/// The keys that signed and approved the request for an entry.
fn signers(entry: &Entry, group: &str) -> Option<(Option<String>, Vec<String>)> {
    let mut reader = Reader::new(&entry.reason);
    let about = About::of(&entry.action, &mut reader)?;
    let asked = SignedRequest::decode(reader.bytes().ok()?).ok().filter(|asked| {
        let terms = asked.terms();
        terms.group.as_str() == group
            && about == (About { operation: terms.operation, statement: terms.statement })
            && asked.check_signature().is_ok()
    });
    let mut approved = Vec::new();
    while !reader.is_empty() {
        let approval = Approval::decode(reader.bytes().ok()?).ok().filter(|approval| {
            let terms = approval.terms();
            terms.group.as_str() == group
                && about == (About { operation: terms.operation, statement: terms.statement })
                && approval.check_signature().is_ok()
        });
        approved.extend(approval.map(|approval| approval.approver().to_string()));
    }
    Some((asked.map(|asked| asked.signer().to_string()), approved))
}

/// What a request for an entry is about.
#[derive(PartialEq, Eq)]
struct About {
    operation: Operation,
    statement: Digest,
}

impl About {
    /// Of a change of the members the nonce comes first in the reason; everything else follows from the action.
    fn of(action: &Action, reason: &mut Reader<'_>) -> Option<Self> {
        let (operation, statement) = match action {
            Action::Begin(request) => (request.change.operation(), request.encode()),
            Action::SetState(change) => (operation_of(change.state), change.encode()),
            Action::Members(change) => {
                let nonce = reason.bytes().ok()?.try_into().ok()?;
                let request = MemberRequest { nonce, change: change.encode(), proof: Vec::new() };
                (request.operation(), request.encode())
            }
            // Adopted keys and ends prove themselves, and who cancels names the request that is cancelled.
            Action::Adopt(_) | Action::End { .. } => return None,
        };
        Some(Self { operation, statement: Digest::of(&statement) })
    }
}

/// The operation by which a key comes into a state.
const fn operation_of(state: KeyState) -> Operation {
    match state {
        KeyState::Destroyed => Operation::KeysDestroy,
        KeyState::Active => Operation::KeysEnable,
        KeyState::Retired | KeyState::Disabled | KeyState::Pending => Operation::KeysDisable,
    }
}
