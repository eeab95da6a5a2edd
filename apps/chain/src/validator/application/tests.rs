//! A validator without a chain around it: what it answers, and what it keeps.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;
use theta_keyfiles::PublicKeyText as _;
use theta_schemes::{Suite, keys::deal_any};
use theta_sharing::Threshold;

use super::*;
use crate::market::Pool;

fn genesis(validators: u8) -> Genesis {
    let (key, _) = deal_any(Suite::Sg02Ristretto255, Threshold::new(2, 4).unwrap(), &mut ChaCha20Rng::seed_from_u64(1));
    let validators = (1..=validators).map(|seed| Trader::from_seed(&[seed; 32]).unwrap());
    Genesis {
        key: key.to_text(&"orders".parse().unwrap()),
        validators: validators.map(|signer| hex::encode(signer.id())).collect(),
        plain_orders: false,
        accounts: Vec::new(),
        pool: Pool { coin: 1, gold: 1 },
    }
}

fn validator(dir: &Path) -> Arc<Validator> {
    let file = ValidatorFile {
        node: 1,
        place: 0,
        secret: "01".repeat(32),
        rpc: "127.0.0.1:1".to_owned(),
        order: false,
        behaviour: Behaviour::Honest,
        account: None,
    };
    Validator::open(dir, &file).unwrap()
}

fn beginning(genesis: &Genesis) -> Asked {
    let app_state_bytes = serde_json::to_vec(genesis).unwrap().into();
    Asked::InitChain(RequestInitChain { chain_id: "test".to_owned(), app_state_bytes, ..Default::default() })
}

/// Which answer a request has. Whoever adds a request has to say so here, and in the table below.
const fn kind(asked: &Asked) -> (usize, &'static str) {
    match asked {
        Asked::Echo(_) => (0, "Echo"),
        Asked::Flush(_) => (1, "Flush"),
        Asked::Info(_) => (2, "Info"),
        Asked::InitChain(_) => (3, "InitChain"),
        Asked::Query(_) => (4, "Query"),
        Asked::CheckTx(_) => (5, "CheckTx"),
        Asked::ListSnapshots(_) => (6, "ListSnapshots"),
        Asked::OfferSnapshot(_) => (7, "OfferSnapshot"),
        Asked::LoadSnapshotChunk(_) => (8, "LoadSnapshotChunk"),
        Asked::ApplySnapshotChunk(_) => (9, "ApplySnapshotChunk"),
        Asked::PrepareProposal(_) => (10, "PrepareProposal"),
        Asked::ProcessProposal(_) => (11, "ProcessProposal"),
        Asked::ExtendVote(_) => (12, "ExtendVote"),
        Asked::VerifyVoteExtension(_) => (13, "VerifyVoteExtension"),
        Asked::FinalizeBlock(_) => (14, "FinalizeBlock"),
        Asked::Commit(_) => (15, "Commit"),
    }
}

/// CometBFT stops at an exception, and any machine in its network can make it ask for a piece of a snapshot.
#[test]
fn each_request_has_its_own_answer_and_none_an_exception() {
    let dir = tempfile::tempdir().unwrap();
    let validator = validator(dir.path());
    let every = [
        Asked::Echo(abci::RequestEcho { message: "there?".to_owned() }),
        Asked::Flush(abci::RequestFlush {}),
        Asked::Info(abci::RequestInfo::default()),
        beginning(&genesis(4)),
        Asked::Query(RequestQuery::default()),
        Asked::CheckTx(RequestCheckTx::default()),
        Asked::ListSnapshots(abci::RequestListSnapshots {}),
        Asked::OfferSnapshot(abci::RequestOfferSnapshot::default()),
        Asked::LoadSnapshotChunk(abci::RequestLoadSnapshotChunk { height: 1, format: 1, chunk: 0 }),
        Asked::ApplySnapshotChunk(abci::RequestApplySnapshotChunk::default()),
        Asked::PrepareProposal(RequestPrepareProposal::default()),
        Asked::ProcessProposal(RequestProcessProposal::default()),
        Asked::ExtendVote(abci::RequestExtendVote::default()),
        Asked::VerifyVoteExtension(RequestVerifyVoteExtension::default()),
        Asked::FinalizeBlock(RequestFinalizeBlock { height: 1, ..Default::default() }),
        Asked::Commit(abci::RequestCommit {}),
    ];
    for (place, asked) in every.into_iter().enumerate() {
        let (expected, name) = kind(&asked);
        assert_eq!(place, expected, "{name} is in the table once");
        let answer = validator.answer(asked).unwrap_or_else(|| panic!("an exception to {name}"));
        assert!(format!("{answer:?}").starts_with(&format!("{name}(")), "{name}: {answer:?}");
        match answer {
            Answer::ListSnapshots(list) => assert!(list.snapshots.is_empty()),
            Answer::LoadSnapshotChunk(piece) => assert!(piece.chunk.is_empty()),
            Answer::OfferSnapshot(offer) => assert_eq!(offer.result(), response_offer_snapshot::Result::Reject),
            Answer::ApplySnapshotChunk(piece) => {
                assert_eq!(piece.result(), response_apply_snapshot_chunk::Result::Abort);
            }
            Answer::ExtendVote(vote) => assert!(vote.vote_extension.is_empty()),
            // What this validator extends votes by is taken by the others.
            Answer::VerifyVoteExtension(vote) => assert_eq!(vote.status(), VerifyStatus::Accept),
            _ => {}
        }
    }
    let strange = RequestVerifyVoteExtension { vote_extension: Bytes::from_static(b"x"), ..Default::default() };
    let Some(Answer::VerifyVoteExtension(vote)) = validator.answer(Asked::VerifyVoteExtension(strange)) else {
        panic!("no answer")
    };
    assert_eq!(vote.status(), VerifyStatus::Reject);
}

#[test]
fn a_validator_does_not_go_on_without_a_genesis_or_without_its_state() {
    let dir = tempfile::tempdir().unwrap();
    let validator = validator(dir.path());
    assert_eq!(validator.answer(beginning(&genesis(1))), None, "one validator cannot outvote those that may lie");
    assert!(validator.answer(beginning(&genesis(4))).is_some());
    let block = RequestFinalizeBlock { height: 1, ..Default::default() };
    assert!(validator.answer(Asked::FinalizeBlock(block)).is_some());
    drop(dir);
    assert_eq!(validator.answer(Asked::Commit(abci::RequestCommit {})), None, "the state cannot be kept");
}

#[test]
fn a_state_that_is_kept_replaces_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(STATE);
    keep(&file, b"one").unwrap();
    keep(&file, b"two").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"two");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}
