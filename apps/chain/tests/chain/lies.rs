//! Traders who lie about what they have sealed, and callers who ask nodes before the chain has said anything.

use std::{path::PathBuf, time::Duration};

use bytes::Bytes;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;
use theta_chain::{
    market::{Ending, Order, label_of},
    net::{KEY, Network, VALIDATORS, Wishes},
};
use theta_client::Client;
use theta_groups::{Group as _, Ristretto255, Scalar as _, Transcript};
use theta_names::NodeId;
use theta_payload::{Aead, PayloadKey, encrypt_bytes, split_ciphertext};
use theta_schemes::{Statement, ciphers::PayloadDigest};
use theta_wire::v1;
use tonic::{Code, Request, Status};

use super::{cometbft, network, turn};

const PATIENCE: Duration = Duration::from_secs(180);
/// Wrap, four elements and a scalar of SG02 on ristretto255.
const CAPSULE: usize = 64 + 4 * 32 + 32;
const SECOND_GENERATOR: &[u8] = b"THETA-V01-CS01-sg02-second-generator-with-ristretto255_XMD:SHA-512_R255MAP_RO_";

type Scalar = <Ristretto255 as theta_groups::Group>::Scalar;

/// A ciphertext whose proof is true and which nobody can open: its maker commits to nothing (`spec/sg02.md`).
fn sealed_nothing(network: &Network, label: &str, rng: &mut ChaCha20Rng) -> Bytes {
    let digest = PayloadDigest::new([3; 32], 64);
    let honest =
        network.key().encapsulate(&PayloadKey::random(rng), Aead::default(), &digest, label.as_bytes()).unwrap();
    let mut header = [&honest[..honest.len() - CAPSULE], &[7; 64]].concat();
    let second = Ristretto255::hash_to_group(SECOND_GENERATOR, &[b"second generator"]);
    let (r, s) = (Scalar::random(rng), Scalar::random(rng));
    for element in [Ristretto255::mul_base(&r), second * r, Ristretto255::mul_base(&s), second * s] {
        header.extend_from_slice(Ristretto255::encode(&element).as_ref());
    }
    let hash =
        Transcript::new("theta/sg02/validity/v1").with("suite", b"sg02-ristretto255").with("header", &header).finish();
    header.extend_from_slice((s + r * Scalar::from_uniform_bytes(&hash)).encode().as_ref());
    network.key().check_request(Statement::Decapsulate(&header)).expect("its proof is true");
    header.extend_from_slice(&[1; 64 + 16]);
    header.into()
}

/// Node 1 takes the order from validator 1 alone, and from that without gaps.
async fn nobody_else_brings_the_order(network: &Network) {
    let node = NodeId::try_from(1).unwrap();
    let far = |after| v1::DeliverRequest { after, through: after + 1, blocks: Vec::new() };
    let mut operator = network.operator().total_order(node).unwrap();
    let refused = operator.deliver(far(0)).await.unwrap_err();
    assert!(refused.code() == Code::PermissionDenied && refused.message().contains("is not the host"), "{refused:?}");
    assert_eq!(operator.collect(v1::CollectRequest {}).await.unwrap_err().code(), Code::PermissionDenied);
    let mut host = network.validators_client(1).unwrap().total_order(node).unwrap();
    let position = tokio::time::timeout(PATIENCE, async {
        loop {
            let position = host.get_order_position(v1::GetOrderPositionRequest {}).await.unwrap().into_inner();
            if !position.unknown {
                break position.height;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let position = position.await.expect("validator 1 brings the order");
    let gap = host.deliver(far(position + 1_000_000)).await.unwrap_err();
    assert!(gap.code() == Code::FailedPrecondition && gap.message().contains("are missing"), "{gap:?}");
    let nobody =
        v1::OrderedBlock { height: 1, messages: vec![v1::OrderedMessage { from: 70_000, ..Default::default() }] };
    let wrong = v1::DeliverRequest { after: 0, through: 1, blocks: vec![nobody] };
    assert_eq!(host.deliver(wrong).await.unwrap_err().code(), Code::InvalidArgument);
}

async fn ask(client: &Client, node: u16, ciphertext: &Bytes) -> Result<(), Status> {
    let header = ciphertext.slice_ref(split_ciphertext(ciphertext).unwrap().0);
    let mut request = Request::new(v1::DecapsulateRequest { key: KEY.to_owned(), header, ..Default::default() });
    request.set_timeout(Duration::from_secs(6));
    let mut node = client.protocol(NodeId::try_from(node).unwrap()).unwrap();
    node.decapsulate(request).await.map(drop)
}

#[test]
fn a_lie_about_a_ciphertext_costs_nobody_else_and_no_node_opens_before_its_validator_asks() {
    let Some(cometbft) = cometbft() else { return };
    let _turn = turn();
    tokio::runtime::Runtime::new().unwrap().block_on(lies(cometbft));
}

async fn lies(cometbft: PathBuf) {
    let wishes = Wishes { chain: "lies".to_owned(), plain_orders: false, liar: None };
    let (network, _dir) = network(cometbft, &wishes).await;
    let (rng, rpc) = (&mut ChaCha20Rng::seed_from_u64(1), network.rpc(1).unwrap());
    let (alice, bob) = (&network.traders.alice, &network.traders.bob);
    let before = rpc.view().await.unwrap();

    // What has no place is opened for nobody: not for who makes the keys, not for another validator, and one node has one share.
    let label = label_of("lies", bob.id(), 9);
    let unordered: Bytes =
        encrypt_bytes(network.key(), &[0; 64], label.as_bytes(), Aead::default(), rng).unwrap().into();
    for node in 1..=VALIDATORS {
        let refused = ask(network.operator(), node, &unordered).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "{refused:?}");
    }
    let stranger = ask(&network.validators_client(1).unwrap(), 2, &unordered).await.unwrap_err();
    assert_ne!(stranger.code(), Code::DeadlineExceeded, "node 2 does not know validator 1: {stranger:?}");
    // On a busy machine the transport's deadline may be first, which does not say why.
    let alone = loop {
        let alone = ask(&network.validators_client(1).unwrap(), 1, &unordered).await.unwrap_err();
        if alone.code() != Code::Cancelled {
            break alone;
        }
    };
    assert!(alone.code() == Code::DeadlineExceeded && alone.message().contains("1 of 2 shares"), "{alone:?}");
    // A label of another chain is not the validators' business at all.
    let foreign: Bytes = encrypt_bytes(network.key(), &[0; 64], b"letters/1", Aead::default(), rng).unwrap().into();
    let refused = ask(&network.validators_client(1).unwrap(), 1, &foreign).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused:?}");

    nobody_else_brings_the_order(&network).await;

    // Alice seals nothing, and garbage; Bob's order behind them is executed as if they were not there.
    let nothing = sealed_nothing(&network, &label_of("lies", alice.id(), 0), rng);
    let nothing = alice.sealed_as("lies", 0, nothing);
    let label = label_of("lies", alice.id(), 1);
    let garbage = encrypt_bytes(network.key(), &[255; 64], label.as_bytes(), Aead::default(), rng).unwrap();
    let garbage = alice.sealed_as("lies", 1, garbage.into());
    let order = Order::buy(10_000, 1);
    let honest = bob.sealed("lies", network.key(), 0, &order, rng).unwrap();
    for tx in [&nothing, &garbage, &honest] {
        assert_eq!(rpc.broadcast(tx).await.unwrap(), (0, String::new()));
    }
    let plain = rpc.broadcast(&bob.plain("lies", 1, order)).await.unwrap();
    assert!(plain.0 != 0 && plain.1.contains("sealed orders only"), "{plain:?}");
    for bytes in [&b"noise"[..], &vec![0; 100_000], &honest[..honest.len() - 1]] {
        let (code, log) = rpc.broadcast(bytes).await.unwrap();
        assert!(code != 0 && log.contains("transaction"), "{log}");
    }
    for validator in 1..=VALIDATORS {
        let view = network.until(validator, PATIENCE, |view| view.ended == 3).await.unwrap();
        let ending = |trader: &[u8; 32], number| view.outcome(trader, number).unwrap().ending;
        assert_eq!(ending(alice.id(), 0), Ending::Void);
        assert_eq!(ending(alice.id(), 1), Ending::Unreadable);
        let (pool, got) = before.pool.after(order.sells, order.amount).unwrap();
        assert_eq!(ending(bob.id(), 0), Ending::Executed { gave: 10_000, got });
        assert_eq!((view.pool, view.waiting), (pool, 0));
    }
}
