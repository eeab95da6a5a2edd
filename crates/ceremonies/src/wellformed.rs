//! Checks that statements are well-formed, and bounds their lengths, by the plan alone.

use theta_groups::Group;
use theta_rounds::Malformed;

use super::dealing::Dealing;
use super::electorate::ballot_of;
use super::encryption::{self, EncryptionKey};
use super::key::read_key;
use super::plan::CeremonyPlan;
use super::recovery::{Answer, read_acceptances, read_masks};
use super::statement::{Kind, Statement};
use super::typed::TypedPlan;

/// The most bytes of items in one message, except that one longer item may be alone in it.
pub(super) const MESSAGE_BYTES: usize = 1 << 18;

/// Reads a statement and forgets it. An honest party's never fails.
pub(super) fn check<G: Group>(plan: &TypedPlan<G>, statement: &Statement) -> Result<(), Malformed> {
    let body = statement.body();
    if let Some(ballot) = ballot_of(statement.slot()) {
        return theta_agreement::check::<CeremonyPlan>(plan, ballot, body);
    }
    match statement.slot().kind {
        Kind::Dealing => Dealing::read(plan, statement).map(drop),
        Kind::Key => read_key::<G>(body).map(drop),
        Kind::EncryptionKey => encryption::read_key(body).map(drop),
        Kind::Complaint | Kind::LateComplaint | Kind::Release if body.len() < 32 => Err(Malformed("no digest")),
        Kind::Activation if body.len() != 36 => Err(Malformed("an activation is an epoch and a digest")),
        Kind::Checked | Kind::Request => read_masks(body).map(drop),
        Kind::Answer => Answer::read(plan, statement).map(drop),
        Kind::Accepted if body.len() != 32 => Err(Malformed("what is accepted is a digest")),
        Kind::Acceptances => read_acceptances(plan, statement).map(drop),
        _ => Ok(()),
    }
}

/// The longest body that an honest party signs: what bounds the memory that others can fill.
pub(super) fn longest_body(plan: &CeremonyPlan, kind: Kind) -> usize {
    let (k, n) = (usize::from(plan.threshold().k()), plan.members().len());
    let (dealers, scalar) = (plan.dealers().len(), plan.group().scalar_len());
    match kind {
        Kind::Dealing => k * plan.group().element_len() + 96 + n * (1 + EncryptionKey::ENCODED_LEN + 2 * scalar),
        // A value, and a certificate of a digest.
        Kind::Proposal => 64 + 34 * dealers + 64 + 66 * n,
        Kind::Checked | Kind::Request => 34 * dealers,
        // A certificate of a digest.
        Kind::Acceptances => 64 + 66 * n,
        _ => 512,
    }
}

/// The longest payload of statements, certificates and values that an honest party sends: as many as fit into one
/// message, or a single longer one.
pub(super) fn longest_items(plan: &CeremonyPlan) -> usize {
    let (n, dealers) = (plan.members().len(), plan.dealers().len());
    let body = Kind::ALL.into_iter().map(|kind| longest_body(plan, kind)).max().unwrap_or(0);
    // Tag, author, slot, length, signature; tag, length, slot, length, body, signers; tag, length, dealers.
    let (statement, certificate, value) = (76 + body, 14 + LONGEST_CERTIFIED + 66 * n, 5 + 34 * dealers);
    MESSAGE_BYTES.max(statement).max(certificate).max(value)
}

/// The longest summary: every slot that every party can fill, and every digest that can be lacking: of a set that is proposed, of one that
/// is decided, of two complaints about each dealer, and of two values.
pub(super) fn longest_summary(plan: &CeremonyPlan) -> usize {
    let parties = plan.parties().count();
    // Complaints of two kinds and a release about each party; votes and proposals of 21 views, 9 dealings and what is said once; or
    // what 65 attempts take, in each of which there are eight kinds of statements.
    let slots = 3 * parties + 600;
    let numbers = || plan.parties().map(|party| usize::from(party.get()));
    let span = numbers().max().unwrap_or(0) - numbers().min().unwrap_or(0);
    14 + 32 * (4 * parties + 2) + (9 + span / 8 + 1) * slots
}

/// The longest body that is certified: an epoch and a digest.
pub(super) const LONGEST_CERTIFIED: usize = 36;
