//! A validator that floods the order: the others refuse its blocks, and what nodes want ordered is brought to them all the same.

use std::{path::PathBuf, time::Duration};

use bytes::Bytes;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;
use theta_chain::{
    market::{
        Genesis, MOST_MESSAGES, MOST_MESSAGES_OF_ONE, MOST_TX, Market, Opening, OrderedMessage, Pool, Refusal, Trader,
        Transaction,
    },
    net::{ORDERED_KEY, THRESHOLD, VALIDATORS, Wishes},
    validator::Behaviour,
};
use theta_client::KeyChange;
use theta_keyfiles::PublicKeyText as _;
use theta_names::{Delivery, NodeId};
use theta_network::tob_proxy::{MOST_AT_HEIGHT, MOST_MESSAGE};
use theta_schemes::{Suite, keys::deal_any};
use theta_sharing::Threshold;
use theta_wire::v1;
use tonic::Request;

use super::{cometbft, network, turn};

const PATIENCE: Duration = Duration::from_secs(180);

/// Nodes take so many messages at one height, and no more ever: a block with more would be the last that hosts can bring.
const _: () = assert!(MOST_MESSAGES <= MOST_AT_HEIGHT && MOST_TX <= MOST_MESSAGE);

/// A market with so many validators.
fn among(count: u8) -> (Market, Vec<Trader>) {
    let (key, _) = deal_any(Suite::Sg02Ristretto255, Threshold::new(2, 4).unwrap(), &mut ChaCha20Rng::seed_from_u64(1));
    let validators: Vec<Trader> = (1..=count).map(|seed| Trader::from_seed(&[seed; 32]).unwrap()).collect();
    let genesis = Genesis {
        key: key.to_text(&"orders".parse().unwrap()),
        validators: validators.iter().map(|signer| hex::encode(signer.id())).collect(),
        plain_orders: false,
        accounts: Vec::new(),
        pool: Pool { coin: 1, gold: 1 },
    };
    assert!(Market::new("test/1", &genesis).is_err(), "its labels would begin with those of another chain");
    (Market::new("test", &genesis).unwrap(), validators)
}

fn message(validators: &[Trader], validator: u16, number: u64) -> Bytes {
    let message = Bytes::from_static(b"for all nodes");
    let signed = OrderedMessage::signed("test", validator, number, &message);
    let signature = validators[usize::from(validator)].sign(&signed);
    Transaction::Ordered(OrderedMessage { validator, number, message, signature }).encode()
}

/// However many of them flood, the last one has its place.
#[test]
fn no_number_of_validators_takes_the_room_of_another() {
    for (count, most) in [(4, 64), (16, 64), (17, 60), (30, 34)] {
        let (mut market, validators) = among(count);
        let last = u16::from(count) - 1;
        for validator in 0..last {
            let taken = (1..=65).filter(|number| market.apply(&message(&validators, validator, *number)).is_ok());
            assert_eq!(taken.count(), most, "validator {validator} of {count}");
        }
        assert_eq!(market.apply(&message(&validators, last, 1)), Ok(()), "of {count}");
    }
}

#[test]
fn a_block_has_no_more_messages_than_nodes_take() {
    let (mut market, validators) = among(16);
    let tx = |validator: u16, number: u64| message(&validators, validator, number);
    let most = u64::try_from(MOST_MESSAGES_OF_ONE).unwrap();
    for number in 1..=most {
        assert_eq!(market.apply(&tx(0, number)), Ok(()));
    }
    assert_eq!(market.apply(&tx(0, most + 1)), Err(Refusal::Crowded));
    let others = (1..16).flat_map(|validator| (1..=most).map(move |number| (validator, number)));
    let taken = others.filter(|(validator, number)| market.apply(&tx(*validator, *number)).is_ok()).count();
    assert_eq!(taken, MOST_MESSAGES - MOST_MESSAGES_OF_ONE);
    // What has had a place is in public, for everybody to send again.
    market.end_block(1);
    for number in [1, 2, most] {
        assert_eq!(market.apply(&tx(0, number)), Err(Refusal::Again));
    }
    // Messages that overtake each other have their places.
    for number in [most + 3, most + 1, most + 2] {
        assert_eq!(market.apply(&tx(0, number)), Ok(()));
        assert_eq!(market.apply(&tx(0, number)), Err(Refusal::Again));
    }
    assert_eq!(market.apply(&tx(0, 1_000_000)), Ok(()));
    assert_eq!(market.apply(&tx(0, 1_000_000 - 63)), Ok(()));
    assert_eq!(market.apply(&tx(0, 1_000_000 - 64)), Err(Refusal::Again), "too late");
    let kept = Market::decode(&market.encode()).unwrap();
    assert_eq!((kept.hash(), kept.last_number(0)), (market.hash(), 1_000_000));
}

#[test]
fn a_validator_that_floods_the_order_does_not_stop_it() {
    let Some(cometbft) = cometbft() else { return };
    let _turn = turn();
    tokio::runtime::Runtime::new().unwrap().block_on(flood(cometbft));
}

async fn flood(cometbft: PathBuf) {
    let liar = Some((VALIDATORS, Behaviour::FloodsOrder));
    let wishes = Wishes { chain: "flood".to_owned(), plain_orders: false, liar };
    let (network, _dir) = network(cometbft, &wishes).await;
    // Its turn has come.
    network.reach(u64::from(VALIDATORS) * 2, PATIENCE).await.unwrap();
    let view = network.until(1, PATIENCE, |view| !view.rejections.is_empty()).await.unwrap();
    assert!(view.rejections[0].reason.contains("messages of nodes"), "{:?}", view.rejections);

    // Nobody makes validators compute what a false opening costs.
    let opening = Transaction::Opening(Opening { id: [1; 32], key: [2; 32] }).encode();
    let (code, log) = network.rpc(1).unwrap().broadcast(&opening).await.unwrap();
    assert!(code != 0 && log.contains("openings come with proposals"), "{log}");

    let (key, suite) = (ORDERED_KEY.parse().unwrap(), Suite::FrostEd25519.into());
    let holders = (1..=VALIDATORS).collect();
    let change = KeyChange::Create { key, suite, delivery: Delivery::All, k: THRESHOLD, holders };
    network.operator().hold(change, |_| ()).await.unwrap();
    let signed = (1..=VALIDATORS).map(|number| {
        let mut node = network.operator().protocol(NodeId::try_from(number).unwrap()).unwrap();
        let mut request = Request::new(v1::SignRequest {
            key: ORDERED_KEY.to_owned(),
            message: Bytes::from_static(b"checkpoint 1"),
            slot: Some(1),
            ..v1::SignRequest::default()
        });
        request.set_timeout(PATIENCE);
        tokio::spawn(async move { node.sign(request).await.map(drop) })
    });
    for signed in signed.collect::<Vec<_>>() {
        signed.await.unwrap().unwrap();
    }
}
