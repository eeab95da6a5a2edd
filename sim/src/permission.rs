//! The policies of nodes, and the approvals of requests.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use bytes::Bytes;
use theta_authority::Presented;
use theta_groups::Secret;
use theta_names::Operation;
use theta_policy::Policy;
use theta_schemes::keys::KeyName;
use theta_statements::{Approval, ApprovalTerms, Ask, MOST_APPROVAL_LIFETIME, SigningKey, UnixTime, Validity};

use crate::group::{CERTIFICATE, EPOCH, Failed};
use crate::scenario::{APPROVERS, BURST, Consent, ConsentFault, HeldKey, NEEDED, PER_SECOND, Sabotage};

/// A day in milliseconds. Validity is in days: far more than any clock is ever set by.
const DAYS: u64 = 86_400_000;

fn approver(number: u8) -> Result<SigningKey, Failed> {
    SigningKey::from_seed(Secret::new([0xa0 | number; 32])).map_err(|error| error.to_string())
}

/// The approvers, as policies have them.
static APPROVING: LazyLock<Result<String, Failed>> = LazyLock::new(|| {
    let lines = (0..APPROVERS).map(|number| {
        let key = approver(number)?.verifying_key();
        Ok(format!("[[approver]]\nname = \"approver-{number}\"\nkey = \"{key}\"\n"))
    });
    lines.collect()
});

/// The policies by their texts. Most runs have the same ones.
static PARSED: LazyLock<Mutex<BTreeMap<String, Policy>>> = LazyLock::new(Mutex::default);

fn parsed(text: String, file: &str) -> Result<Policy, Failed> {
    let mut all = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(policy) = all.get(&text) {
        return Ok(policy.clone());
    }
    let policy = Policy::parse(&text, file).map_err(|error| error.to_string())?;
    all.insert(text, policy.clone());
    Ok(policy)
}

/// The policy of a node, parsed.
pub(crate) fn policy(
    node: u16,
    keys: &[(&KeyName, &HeldKey)],
    ordered: bool,
    bug: Option<Sabotage>,
) -> Result<Policy, Failed> {
    let mut text =
        format!("format = 1\n[[client]]\nname = \"app\"\ncertificates = [\"{}\"]\n", hex::encode(CERTIFICATE));
    text += APPROVING.as_ref().map_err(Failed::clone)?;
    for (name, held) in keys {
        if held.refused_by.contains(&node) {
            text += &format!(
                "[[rule]]\nname = \"not-{name}\"\neffect = \"deny\"\nclients = [\"*\"]\nkeys = [\"{name}\"]\n\
                 operations = [\"*\"]\n"
            );
        }
        if held.slots {
            text += &format!(
                "[[signing]]\nname = \"slots-{name}\"\nkeys = [\"{name}\"]\nslot = \"claimed\"\norder = \"any\"\n"
            );
            if ordered {
                text += "race = \"ordered\"\n";
            }
        }
        text += &format!(
            "[[rule]]\nname = \"use-{name}\"\neffect = \"allow\"\nclients = [\"app\"]\nkeys = [\"{name}\"]\n\
             operations = [\"decapsulate\", \"sign\", \"sign-digest\", \"flip-coin\"]\n"
        );
        if held.consents && bug != Some(Sabotage::NoConsents) {
            let names: Vec<String> = (0..APPROVERS).map(|number| format!("\"approver-{number}\"")).collect();
            text += &format!("approvals = {{ of = [{}], need = {NEEDED} }}\n", names.join(", "));
        }
        if held.rated && bug != Some(Sabotage::NoRates) {
            text += &format!("rate = \"{PER_SECOND}/s\"\nburst = {BURST}\n");
        }
    }
    text += "[[rule]]\nname = \"ceremonies\"\neffect = \"allow\"\nclients = [\"app\"]\nkeys = [\"*\"]\noperations = [\"keys.*\"]\n";
    text += "[[rule]]\nname = \"members\"\neffect = \"allow\"\nclients = [\"app\"]\nkeys = [\"*\"]\noperations = [\"group.renew\", \"group.change\"]\n";
    parsed(text, "policy.toml")
}

/// A policy that allows the client everything, for nodes that use none of their own because they lie or because a bug keeps
/// them from asking it.
pub(crate) fn none() -> Result<Policy, Failed> {
    let text = format!(
        "format = 1\n[[client]]\nname = \"app\"\ncertificates = [\"{}\"]\n[[rule]]\nname = \"all\"\neffect = \"allow\"\n\
         clients = [\"app\"]\nkeys = [\"*\"]\noperations = [\"*\", \"sign-digest\"]\n",
        hex::encode(CERTIFICATE)
    );
    parsed(text, "none.toml")
}

/// The client's certificate, and the approvals in the request.
pub(crate) fn presented(approvals: &[Bytes]) -> Presented {
    Presented::new(Some(CERTIFICATE), None).with(&Bytes::new(), approvals)
}

/// An approval of the ask, or a faulty one.
pub(crate) fn approval(consent: Consent, ask: &Ask<'_>) -> Result<Approval, Failed> {
    let now = UnixTime(1_000 * EPOCH);
    let (from, until) = (UnixTime(now.0 - 10 * DAYS), now.plus(10 * DAYS));
    let (mut ask, mut validity) = (*ask, Validity { from, until });
    match consent.fault {
        Some(ConsentFault::OtherMessage) => ask.statement = b"another message",
        Some(ConsentFault::OtherKey) => ask.key = Some("another-key"),
        Some(ConsentFault::OtherOperation) => ask.operation = Operation::KeysDestroy,
        Some(ConsentFault::OtherGroup) => ask.group = "another-group",
        Some(ConsentFault::Expired) => validity.until = UnixTime(now.0 - 5 * DAYS),
        Some(ConsentFault::Early) => validity.from = now.plus(5 * DAYS),
        Some(ConsentFault::TooLong) => validity.until = from.plus(MOST_APPROVAL_LIFETIME + 1),
        Some(ConsentFault::Forged) | None => {}
    }
    let terms = ApprovalTerms::of(&ask, validity).map_err(|error| error.to_string())?;
    let approval = Approval::sign(terms, &approver(consent.approver)?);
    if consent.fault != Some(ConsentFault::Forged) {
        return Ok(approval);
    }
    let mut bytes = approval.encode();
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
    Approval::decode(&bytes).map_err(|error| error.to_string())
}
