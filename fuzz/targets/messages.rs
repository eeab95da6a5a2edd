//! The messages of nodes and clients: envelopes of the orchestrator and every message of the APIs.

#![no_main]

// The module is private to its crate; it depends only on the instance id, so its source is included here.
#[allow(dead_code, reason = "the orchestrator uses all of it")]
#[path = "../../crates/orchestration/src/instances/envelope.rs"]
mod envelope;

use core::fmt::Debug;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use prost::Message;
use theta_fuzz::plant;
use theta_orchestration::InstanceId;
use theta_wire::{peer, v1};

fuzz_target!(init: plant("messages", seeds()), |input: &[u8]| {
    if let Ok(content) = envelope::Content::decode(Bytes::copy_from_slice(input)) {
        assert_eq!(envelope::Content::decode(content.clone().encode()), Ok(content));
    }
    round_trip::<peer::Envelope>(input);
    round_trip::<v1::DecryptRequest>(input);
    round_trip::<v1::DecryptResponse>(input);
    round_trip::<v1::DecapsulateRequest>(input);
    round_trip::<v1::SignRequest>(input);
    round_trip::<v1::SignResponse>(input);
    round_trip::<v1::FlipCoinRequest>(input);
    round_trip::<v1::FlipCoinResponse>(input);
    round_trip::<v1::GetResultRequest>(input);
    round_trip::<v1::InstanceStatus>(input);
    round_trip::<v1::ListKeysResponse>(input);
    round_trip::<v1::GetPublicKeyResponse>(input);
    round_trip::<v1::GetStatusResponse>(input);
    round_trip::<v1::EncryptRequest>(input);
    round_trip::<v1::CreateShareRequest>(input);
    round_trip::<v1::VerifyShareRequest>(input);
    round_trip::<v1::CombineRequest>(input);
    round_trip::<v1::VerifyRequest>(input);
    round_trip::<v1::DecapsulateResponse>(input);
    round_trip::<v1::WatchInstanceRequest>(input);
    round_trip::<v1::GetPublicKeyRequest>(input);
    round_trip::<v1::EncryptResponse>(input);
    round_trip::<v1::VerifyCiphertextRequest>(input);
    round_trip::<v1::VerifyCiphertextResponse>(input);
    round_trip::<v1::CreateShareResponse>(input);
    round_trip::<v1::VerifyShareResponse>(input);
    round_trip::<v1::CombineResponse>(input);
    round_trip::<v1::VerifyResponse>(input);
    round_trip::<v1::AuditEntry>(input);
    round_trip::<v1::CeremonyStatus>(input);
    round_trip::<v1::ChangeKeyStateRequest>(input);
    round_trip::<v1::ChangeKeyStateResponse>(input);
    round_trip::<v1::ExplainPolicyRequest>(input);
    round_trip::<v1::ExplainPolicyResponse>(input);
    round_trip::<v1::GetPolicyRequest>(input);
    round_trip::<v1::GetPolicyResponse>(input);
    round_trip::<v1::HoldCeremonyRequest>(input);
    round_trip::<v1::ListCeremoniesRequest>(input);
    round_trip::<v1::ListCeremoniesResponse>(input);
    round_trip::<v1::ReadAuditRequest>(input);
    round_trip::<v1::WatchCeremonyRequest>(input);
});

/// Protocol Buffers allow many encodings of one message: a message that is written must read back as the same message.
fn round_trip<M: Message + Default + PartialEq + Debug>(input: &[u8]) {
    if let Ok(message) = M::decode(input) {
        let written = message.encode_to_vec();
        assert_eq!(M::decode(&*written).as_ref(), Ok(&message));
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let message = |kind, number| peer::Envelope {
        version: peer::VERSION,
        instance_id: vec![7; 32].into(),
        kind,
        number,
        payload: Bytes::from_static(b"share"),
        stream: peer::INSTANCES,
    };
    let payload = Bytes::from_static(b"order");
    let custody = peer::Envelope { version: peer::VERSION, stream: peer::CUSTODY, payload, ..Default::default() };
    vec![
        custody.encode_to_vec(),
        message(1, 1).encode_to_vec(),
        message(u32::MAX, 0).encode_to_vec(),
        v1::SignRequest { key: "name".into(), message: Bytes::from_static(b"m"), ..Default::default() }.encode_to_vec(),
        v1::VerifyRequest::default().encode_to_vec(),
    ]
}
