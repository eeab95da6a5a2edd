//! Serves the audit log and explains decisions of the policy.

use std::sync::Arc;

use bytes::Bytes;
use theta_authority::{Authority, BringWarrant, Look, PruneAudit, PruneError, reason_of};
use theta_custody::{MembersError, MembersState};
use theta_names::{Label, Operation};
use theta_orchestration::{ChangeMembersError, NoCustodian};
use theta_policy::Answer;
use theta_statements::audit::Checkpoint;
use theta_statements::{
    Approval, Ask, Digest, MOST_MEMBER_CHANGE, MOST_MEMBER_PROOF, MemberRequest, TakeBackRequest, UnixTime,
};
use theta_wire::v1;
use tonic::{Request, Response, Status, codegen::BoxStream};

use super::keys::nonce_of;
use super::{gate::Arrival, refusal, state::NodeState};

mod reading;

/// Serves `theta.v1.Governance`.
pub(crate) struct Governance {
    node: Arc<NodeState>,
}

impl Governance {
    pub(crate) const fn new(node: Arc<NodeState>) -> Self {
        Self { node }
    }
}

#[tonic::async_trait]
impl v1::governance_server::Governance for Governance {
    async fn read_audit(
        &self,
        request: Request<v1::ReadAuditRequest>,
    ) -> Result<Response<BoxStream<v1::AuditEntry>>, Status> {
        let granted = self.node.decide_plain(&request, Look::Audit).await?;
        let stream_place = self.node.stream(granted.client())?;
        let v1::ReadAuditRequest { from, count } = *request.get_ref();
        // The request keeps its place under the node's bounds while its records are read.
        let place = request.extensions().get::<Arrival>().cloned();
        Ok(Response::new(reading::records(Arc::clone(&self.node.authority), (from, count), (place, stream_place))))
    }

    async fn read_ledger(
        &self,
        request: Request<v1::ReadLedgerRequest>,
    ) -> Result<Response<BoxStream<v1::LedgerEntry>>, Status> {
        let granted = self.node.decide_plain(&request, Look::Ledger).await?;
        let stream_place = self.node.stream(granted.client())?;
        let place = request.extensions().get::<Arrival>().cloned();
        let store = Arc::clone(self.node.authority.store());
        Ok(Response::new(reading::entries(store, request.get_ref().after, (place, stream_place))))
    }

    async fn prune_audit(
        &self,
        request: Request<v1::PruneAuditRequest>,
    ) -> Result<Response<v1::PruneAuditResponse>, Status> {
        let v1::PruneAuditRequest { count, head, signed_request, approvals } = request.get_ref();
        let wrong = |_| refusal::invalid(format!("a checkpoint's hash has 32 bytes, this one has {}", head.len()));
        let head = Digest(<[u8; 32]>::try_from(head.as_ref()).map_err(wrong)?);
        let asks = PruneAudit { through: Checkpoint { count: *count, head } };
        let granted = self.node.decide(&request, (signed_request, approvals), asks).await?;
        // The request keeps its place under the node's bounds until it is done, also if its caller does not wait.
        let place = request.extensions().get::<Arrival>().cloned();
        let authority = Arc::clone(&self.node.authority);
        let pruned = tokio::task::spawn_blocking(move || {
            let pruned = authority.prune(granted);
            drop(place);
            pruned
        })
        .await;
        let pruned = pruned.map_err(|error| Status::internal(format!("bug: pruning panicked: {error}")))?;
        let pruned = pruned.map_err(|error| not_pruned(&error))?;
        Ok(Response::new(v1::PruneAuditResponse {
            removed: pruned.removed,
            first: pruned.after.count,
            previous: Bytes::copy_from_slice(&pruned.after.head.0),
        }))
    }

    async fn change_members(
        &self,
        request: Request<v1::ChangeMembersRequest>,
    ) -> Result<Response<v1::MembersStatus>, Status> {
        let v1::ChangeMembersRequest { change, nonce, signed_request, approvals, proof } = request.get_ref();
        if change.len() > MOST_MEMBER_CHANGE || proof.len() > MOST_MEMBER_PROOF {
            return Err(refusal::invalid("the change or its proof is longer than any can be"));
        }
        let (nonce, change, proof) = (nonce_of(nonce)?, change.to_vec(), proof.to_vec());
        let asks = MemberRequest { nonce, change, proof };
        let granted = self.node.decide_seated(&request, (signed_request, approvals), asks).await?;
        let reason = reason_of(signed_request, approvals);
        let state = self.node.orchestrator.change_members(granted, reason).await;
        Ok(Response::new(members_status(state.map_err(|error| not_looked_at(&error))?)))
    }

    async fn take_back_change(
        &self,
        request: Request<v1::TakeBackChangeRequest>,
    ) -> Result<Response<v1::MembersStatus>, Status> {
        let v1::TakeBackChangeRequest { change, nonce, signed_request, approvals } = request.get_ref();
        if change.len() > MOST_MEMBER_CHANGE {
            return Err(refusal::invalid("the change is longer than any can be"));
        }
        let asks = TakeBackRequest { nonce: nonce_of(nonce)?, change: change.to_vec() };
        let granted = self.node.decide_seated(&request, (signed_request, approvals), asks).await?;
        let state = self.node.orchestrator.take_back(granted).await;
        Ok(Response::new(members_status(state.map_err(|error| not_looked_at(&error))?)))
    }

    async fn bring_warrant(
        &self,
        request: Request<v1::BringWarrantRequest>,
    ) -> Result<Response<v1::MembersStatus>, Status> {
        let v1::BringWarrantRequest { warrant, signed_request, approvals } = request.get_ref();
        let asks = BringWarrant { warrant: warrant.clone() };
        let granted = self.node.decide(&request, (signed_request, approvals), asks).await?;
        let state = self.node.orchestrator.bring_warrant(granted).await;
        Ok(Response::new(members_status(state.map_err(|error| not_looked_at(&error))?)))
    }

    async fn explain_policy(
        &self,
        request: Request<v1::ExplainPolicyRequest>,
    ) -> Result<Response<v1::ExplainPolicyResponse>, Status> {
        let granted = self.node.decide_plain(&request, Look::Policy).await?;
        self.node.authority.submission(granted.client()).map_err(|refusal| refusal::gate(&refusal))?;
        // The request keeps its place under the node's bounds until it is done, also if its caller does not wait.
        let place = request.extensions().get::<Arrival>().cloned();
        let (authority, asked) = (Arc::clone(&self.node.authority), request.into_inner());
        // It verifies signatures and digests the statement.
        let explained = tokio::task::spawn_blocking(move || {
            let explained = explain(&authority, asked);
            drop(place);
            explained
        });
        let explained = explained.await;
        explained.map_err(|error| Status::internal(format!("bug: explaining panicked: {error}")))?.map(Response::new)
    }

    async fn get_policy(
        &self,
        request: Request<v1::GetPolicyRequest>,
    ) -> Result<Response<v1::GetPolicyResponse>, Status> {
        let _ = self.node.decide_plain(&request, Look::Policy).await?;
        let policy = self.node.authority.policy();
        Ok(Response::new(v1::GetPolicyResponse {
            digest: Bytes::copy_from_slice(&policy.digest().0),
            rules: policy.rules().map(ToString::to_string).collect(),
            signing_rules: policy.signing_rules().map(ToString::to_string).collect(),
        }))
    }
}

/// What the policy says about a request that somebody might make. Blocks.
fn explain(authority: &Authority, asked: v1::ExplainPolicyRequest) -> Result<v1::ExplainPolicyResponse, Status> {
    let v1::ExplainPolicyRequest { client, operation, key, label, statement, slot, approvals, at } = asked;
    let operation: Operation =
        operation.parse().map_err(|error: theta_names::OperationError| refusal::invalid(error.to_string()))?;
    let approvals = approvals
        .iter()
        .take(theta_statements::MOST_APPROVALS)
        .map(|bytes| Approval::decode(bytes))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| refusal::invalid(format!("not an approval: {error}")))?;
    let policy = authority.policy();
    let ask = Ask {
        key: Some(key.as_str()).filter(|key| !key.is_empty()),
        label: Label::new(&*label).map_err(|error| refusal::invalid(error.to_string()))?,
        statement: &statement,
        slot,
        approvals: &approvals,
        ..Ask::new(authority.group(), operation)
    };
    let at = if at == 0 { UnixTime::now() } else { UnixTime(at.min(UnixTime::LAST.0)) };
    let explanation = policy.explain(&client, &ask, at);
    let json = serde_json::to_string(&explanation)
        .map_err(|error| Status::internal(format!("bug: an explanation is no JSON: {error}")))?;
    let answer = match explanation.answer {
        Answer::Allow => "allow",
        Answer::Deny => "deny",
        Answer::Depends => "depends",
    };
    Ok(v1::ExplainPolicyResponse {
        text: explanation.to_string(),
        json,
        answer: answer.to_owned(),
        policy: Bytes::copy_from_slice(&policy.digest().0),
    })
}

fn not_pruned(error: &PruneError) -> Status {
    match error {
        PruneError::Store(error) => {
            tracing::error!(%error, "the audit log cannot be pruned");
            Status::unavailable("the audit log of this node cannot be read or written: see the node's log")
        }
        PruneError::Unrecorded(refusal) => refusal::gate(refusal),
        _ => Status::failed_precondition(refusal::short(error.to_string())),
    }
}

fn members_status(state: MembersState) -> v1::MembersStatus {
    let status = |word: &str| v1::MembersStatus { state: word.to_owned(), ..Default::default() };
    match state {
        MembersState::Waiting { awaits } => {
            v1::MembersStatus { awaits: awaits.iter().map(|node| u32::from(node.get())).collect(), ..status("waiting") }
        }
        MembersState::Decided { height } => v1::MembersStatus { height, ..status("decided") },
        MembersState::TakenBack => status("taken back"),
        MembersState::Refused(text) => v1::MembersStatus { text: refusal::short(text), ..status("refused") },
    }
}

fn not_looked_at(error: &ChangeMembersError) -> Status {
    let message = refusal::short(error.to_string());
    match error {
        ChangeMembersError::Members(MembersError::Change(_) | MembersError::Warrant(_)) => {
            Status::invalid_argument(message)
        }
        ChangeMembersError::Members(MembersError::StoreFailed(_))
        | ChangeMembersError::NoCustodian(NoCustodian::ShuttingDown) => Status::unavailable(message),
        ChangeMembersError::NoCustodian(NoCustodian::Fixed) => Status::failed_precondition(message),
    }
}
