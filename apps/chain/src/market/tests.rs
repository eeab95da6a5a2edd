//! The state machine alone: a key that is dealt here, and blocks that are made here.

use std::sync::OnceLock;

use bytes::Bytes;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;
use sha2::{Digest as _, Sha256};
use theta_keyfiles::PublicKeyText as _;
use theta_payload::{Aead, PayloadKey, encrypt_bytes, split_ciphertext};
use theta_schemes::{
    Statement, Suite,
    ciphers::PayloadDigest,
    keys::{AnyKeyShare, AnyPublicKey, deal_any},
};
use theta_sharing::ShareIndex;
use theta_sharing::Threshold;

use super::*;

const CHAIN: &str = "test";

struct World {
    key: AnyPublicKey,
    shares: Vec<AnyKeyShare>,
    alice: Trader,
    bob: Trader,
    validators: Vec<Trader>,
}

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let (key, shares) = deal_any(Suite::Sg02Ristretto255, Threshold::new(2, 4).unwrap(), &mut rng(1));
        let trader = |seed| Trader::from_seed(&[seed; 32]).unwrap();
        World { key, shares, alice: trader(1), bob: trader(2), validators: (11..15).map(trader).collect() }
    })
}

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

fn genesis(plain_orders: bool) -> Genesis {
    let world = world();
    let account = |trader: &Trader| GenesisAccount { trader: hex::encode(trader.id()), coin: 1_000, gold: 1_000 };
    Genesis {
        key: world.key.to_text(&"orders".parse().unwrap()),
        validators: world.validators.iter().map(|signer| hex::encode(signer.id())).collect(),
        plain_orders,
        accounts: vec![account(&world.alice), account(&world.bob)],
        pool: Pool { coin: 10_000, gold: 10_000 },
    }
}

fn market() -> Market {
    Market::new(CHAIN, &genesis(true)).unwrap()
}

/// Applies a block whose transactions must all be taken.
#[track_caller]
fn block(market: &mut Market, txs: &[Bytes]) {
    for tx in txs {
        market.apply(tx).unwrap();
    }
    market.end_block(market.height() + 1);
}

fn sealed(trader: &Trader, number: u64, order: Order) -> Bytes {
    let seed = u64::from(trader.id()[0]) * 1_000 + number;
    trader.sealed(CHAIN, &world().key, number, &order, &mut rng(seed)).unwrap()
}

/// What the nodes would answer: the key, from two shares.
fn opening(tx: &Bytes) -> Bytes {
    let Transaction::Sealed(sealed) = Transaction::decode(tx).unwrap() else { panic!("no sealed order") };
    let (key, shares, mut rng) = (&world().key, &world().shares, rng(7));
    let header = Statement::Decapsulate(split_ciphertext(&sealed.ciphertext).unwrap().0);
    let answers: Vec<(ShareIndex, Vec<u8>)> =
        [0, 3].map(|at: usize| (shares[at].index(), key.create_share(&shares[at], header, &mut rng).unwrap())).to_vec();
    let answers: Vec<(ShareIndex, &[u8])> = answers.iter().map(|(index, bytes)| (*index, bytes.as_slice())).collect();
    let combined = key.combine(header, &answers, &mut rng).unwrap();
    let key = combined.result.expose().as_slice().try_into().unwrap();
    Transaction::Opening(Opening { id: id(tx), key }).encode()
}

fn id(tx: &Bytes) -> SealId {
    let Transaction::Sealed(sealed) = Transaction::decode(tx).unwrap() else { panic!("no sealed order") };
    Sha256::digest(&sealed.ciphertext).into()
}

fn word(tx: &Bytes, validator: u16) -> Bytes {
    let signature = world().validators[usize::from(validator)].sign(&VoidWord::signed(CHAIN, &id(tx), validator));
    Transaction::Void(VoidWord { id: id(tx), validator, signature }).encode()
}

fn endings(market: &Market) -> Vec<Ending> {
    market.outcomes().0.map(|outcome| outcome.ending).collect()
}

#[test]
fn orders_are_executed_in_the_order_of_their_places_whatever_is_opened_first() {
    let mut market = market();
    let orders = [
        sealed(&world().alice, 0, Order::buy(500, 1)),
        sealed(&world().bob, 0, Order::buy(500, 1)),
        sealed(&world().alice, 1, Order::sell(100, 1)),
    ];
    block(&mut market, &orders);
    // The later two are known first, and wait for the first.
    block(&mut market, &[opening(&orders[2]), opening(&orders[1])]);
    assert!(endings(&market).is_empty() && market.waiting().count() == 3);
    let (pool, first) = market.pool().after(Asset::Coin, 500).unwrap();
    let (pool, second) = pool.after(Asset::Coin, 500).unwrap();
    let (pool, third) = pool.after(Asset::Gold, 100).unwrap();
    block(&mut market, &[opening(&orders[0])]);
    let executed = |gave, got| Ending::Executed { gave, got };
    assert_eq!(endings(&market), [executed(500, first), executed(500, second), executed(100, third)]);
    assert_eq!(market.pool(), pool);
    assert!(market.outcomes().0.all(|outcome| (outcome.ordered, outcome.height) == (1, 3)));
}

/// Whoever learns a sealed order's key with everybody else, and proposes the next block, does not trade before it by an order that is not sealed.
#[test]
fn who_reads_an_order_that_has_its_place_trades_behind_it() {
    let (mut market, world) = (market(), world());
    let alice = sealed(&world.alice, 0, Order::buy(500, 1));
    block(&mut market, std::slice::from_ref(&alice));
    let (pool, hers) = market.pool().after(Asset::Coin, 500).unwrap();
    let (pool, his) = pool.after(Asset::Coin, 300).unwrap();
    block(&mut market, &[world.bob.plain(CHAIN, 0, Order::buy(300, 1)), opening(&alice)]);
    let executed = |gave, got| Ending::Executed { gave, got };
    assert_eq!(endings(&market), [executed(500, hers), executed(300, his)]);
    assert_eq!(market.pool(), pool);
    assert_eq!(market.outcomes().0.map(|outcome| outcome.sealed).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn orders_that_are_not_sealed_wait_in_the_same_queue_and_count_in_it() {
    let (mut market, world) = (market(), world());
    let alice = sealed(&world.alice, 0, Order::buy(500, 1));
    block(&mut market, std::slice::from_ref(&alice));
    let plain = |number| world.bob.plain(CHAIN, number, Order::buy(1, 0));
    for number in 0..MOST_WAITING_OF_ONE as u64 {
        market.apply(&plain(number)).unwrap();
    }
    assert_eq!(market.apply(&plain(MOST_WAITING_OF_ONE as u64)), Err(Refusal::Full));
    market.end_block(2);
    assert!(endings(&market).is_empty(), "all wait behind a sealed order");
    let kept = Market::decode(&market.encode()).unwrap();
    assert_eq!((kept.hash(), kept.waiting().count()), (market.hash(), 1 + MOST_WAITING_OF_ONE));
    assert_eq!(market.place_of(world.bob.id(), 3), Some(2));
    block(&mut market, &[opening(&alice)]);
    assert_eq!((market.waiting().count(), endings(&market).len()), (0, 1 + MOST_WAITING_OF_ONE));
}

#[test]
fn an_order_is_opened_in_a_later_block_by_its_own_key_once() {
    let mut market = market();
    let (one, other) = (sealed(&world().alice, 0, Order::buy(5, 0)), sealed(&world().bob, 0, Order::buy(5, 0)));
    assert_eq!(market.clone().apply(&opening(&one)), Err(Refusal::NotWaiting), "it has no place");
    market.apply(&one).unwrap();
    assert_eq!(market.apply(&opening(&one)), Err(Refusal::NotWaiting), "the block is not decided");
    block(&mut market, std::slice::from_ref(&other));
    let Transaction::Opening(true_key) = Transaction::decode(&opening(&other)).unwrap() else { panic!() };
    let stolen = Transaction::Opening(Opening { id: id(&one), key: true_key.key }).encode();
    assert_eq!(market.apply(&stolen), Err(Refusal::FalseKey), "the key of another");
    let mut wrong = true_key.key;
    wrong[31] ^= 1;
    let wrong = Transaction::Opening(Opening { id: id(&other), key: wrong }).encode();
    assert_eq!(market.apply(&wrong), Err(Refusal::FalseKey));
    market.apply(&opening(&one)).unwrap();
    assert_eq!(market.apply(&opening(&one)), Err(Refusal::NotWaiting), "it is decided");
}

#[test]
fn nobody_sends_what_another_has_sealed() {
    let (mut market, world) = (market(), world());
    let tx = sealed(&world.alice, 0, Order::buy(5, 0));
    let Transaction::Sealed(Sealed { ciphertext, .. }) = Transaction::decode(&tx).unwrap() else { panic!() };
    let copied = |trader: &Trader, number| trader.sealed_as(CHAIN, number, ciphertext.clone());
    assert!(matches!(market.apply(&copied(&world.bob, 0)), Err(Refusal::Ciphertext(why)) if why.contains("label")));
    // The label is under the proof: changed, it is no valid ciphertext any more.
    let (old, new) = (label_of(CHAIN, world.alice.id(), 0), label_of(CHAIN, world.bob.id(), 0));
    let at = ciphertext.windows(old.len()).position(|window| window == old.as_bytes()).unwrap();
    let relabelled = [&ciphertext[..at], new.as_bytes(), &ciphertext[at + old.len()..]].concat();
    let relabelled = world.bob.sealed_as(CHAIN, 0, relabelled.into());
    assert!(
        matches!(market.apply(&relabelled), Err(Refusal::Ciphertext(why)) if !why.contains("its label is of another"))
    );
    // In another's name, without his signature.
    let Transaction::Sealed(theirs) = Transaction::decode(&copied(&world.bob, 0)).unwrap() else { panic!() };
    let forged = Transaction::Sealed(Sealed { trader: *world.alice.id(), ..theirs }).encode();
    assert_eq!(market.apply(&forged), Err(Refusal::Signature));
    market.apply(&tx).unwrap();
    assert_eq!(market.apply(&tx), Err(Refusal::Number(1)), "a second time");
    assert_eq!(market.apply(&copied(&world.alice, 2)), Err(Refusal::Number(1)));
    assert!(matches!(market.apply(&copied(&world.alice, 1)), Err(Refusal::Ciphertext(_))), "another number");
    let stranger = Trader::from_seed(&[9; 32]).unwrap();
    assert_eq!(market.apply(&copied(&stranger, 0)), Err(Refusal::NoAccount));
    let elsewhere = world.bob.sealed("other", &world.key, 0, &Order::buy(1, 0), &mut rng(3)).unwrap();
    assert_eq!(market.apply(&elsewhere), Err(Refusal::Signature), "another chain");
}

#[test]
fn what_is_no_order_inside_ends_without_effect_and_holds_nobody_up() {
    let (mut market, world) = (market(), world());
    let (key, before) = (PayloadKey::random(&mut rng(4)), market.pool());
    let label = label_of(CHAIN, world.alice.id(), 0);
    // A header that is honest about a payload that is none.
    let digest = PayloadDigest::new([9; 32], ORDER_LEN as u64);
    let mut ciphertext = world.key.encapsulate(&key, Aead::default(), &digest, label.as_bytes()).unwrap();
    ciphertext.extend([1; ORDER_LEN + 16]);
    let garbage = world.alice.sealed_as(CHAIN, 0, ciphertext.into());
    let label = label_of(CHAIN, world.bob.id(), 0);
    let no_order =
        encrypt_bytes(&world.key, &[255; ORDER_LEN], label.as_bytes(), Aead::default(), &mut rng(5)).unwrap();
    let no_order = world.bob.sealed_as(CHAIN, 0, no_order.into());
    block(&mut market, &[garbage.clone(), no_order.clone()]);
    block(&mut market, &[opening(&no_order), opening(&garbage)]);
    assert_eq!(endings(&market), [Ending::Unreadable, Ending::Unreadable]);
    assert_eq!(market.pool(), before);
    let short = encrypt_bytes(
        &world.key,
        &[0; 63],
        label_of(CHAIN, world.bob.id(), 1).as_bytes(),
        Aead::default(),
        &mut rng(6),
    );
    let short = world.bob.sealed_as(CHAIN, 1, short.unwrap().into());
    assert!(matches!(market.apply(&short), Err(Refusal::Ciphertext(why)) if why.contains("longer or shorter")));
}

#[test]
fn k_validators_and_no_fewer_declare_an_order_void() {
    let mut market = market();
    let (lie, after) = (sealed(&world().alice, 0, Order::buy(5, 0)), sealed(&world().bob, 0, Order::buy(7, 0)));
    block(&mut market, &[lie.clone(), after.clone()]);
    block(&mut market, &[opening(&after), word(&lie, 2)]);
    assert_eq!(market.waiting().count(), 2, "one validator may lie");
    assert_eq!(market.clone().apply(&word(&lie, 2)), Err(Refusal::NotWaiting), "twice the same");
    let Transaction::Void(theirs) = Transaction::decode(&word(&lie, 2)).unwrap() else { panic!() };
    let forged = Transaction::Void(VoidWord { validator: 1, ..theirs }).encode();
    assert_eq!(market.apply(&forged), Err(Refusal::Signature));
    let nobody = Transaction::Void(VoidWord { validator: 4, ..theirs }).encode();
    assert_eq!(market.apply(&nobody), Err(Refusal::NoValidator));
    // A word of a liar does not keep the key from being taken.
    let mut opened = market.clone();
    block(&mut opened, &[opening(&lie)]);
    assert!(matches!(endings(&opened)[..], [Ending::Executed { .. }, Ending::Executed { .. }]));
    block(&mut market, &[word(&lie, 0)]);
    assert!(matches!(endings(&market)[..], [Ending::Void, Ending::Executed { gave: 7, .. }]));
}

#[test]
fn what_cannot_be_paid_or_is_too_dear_ends_without_effect() {
    let (mut market, world) = (market(), world());
    let before = (market.pool(), *market.account(world.alice.id()).unwrap());
    for (number, order) in
        (0..).zip([Order::buy(1_001, 0), Order::buy(100, 100), Order::buy(0, 0), Order::sell(u64::MAX, 0)])
    {
        block(&mut market, &[world.alice.plain(CHAIN, number, order)]);
    }
    assert_eq!(endings(&market), [Ending::NotEnough, Ending::PriceTooBad, Ending::PriceTooBad, Ending::NotEnough]);
    assert_eq!((market.pool(), market.account(world.alice.id()).unwrap().coin), (before.0, before.1.coin));
    assert_eq!(market.account(world.alice.id()).unwrap().next, 4, "their numbers are used");
    let mut strict = Market::new(CHAIN, &genesis(false)).unwrap();
    assert_eq!(strict.apply(&world.alice.plain(CHAIN, 0, Order::buy(1, 0))), Err(Refusal::PlainOrder));
}

#[test]
fn one_trader_waits_with_so_many_orders_at_most() {
    let (mut market, world) = (market(), world());
    for number in 0..MOST_WAITING_OF_ONE as u64 {
        market.apply(&sealed(&world.alice, number, Order::buy(1, 0))).unwrap();
    }
    let next = sealed(&world.alice, MOST_WAITING_OF_ONE as u64, Order::buy(1, 0));
    assert_eq!(market.apply(&next), Err(Refusal::Full));
    market.apply(&sealed(&world.bob, 0, Order::buy(1, 0))).unwrap();
}

#[test]
fn states_have_one_encoding_and_come_back_whole() {
    let mut market = market();
    let orders: Vec<Bytes> = (0..4).map(|number| sealed(&world().alice, number, Order::buy(3, 0))).collect();
    block(&mut market, &orders);
    block(&mut market, &[opening(&orders[0]), opening(&orders[2]), word(&orders[1], 3)]);
    block(&mut market, &[world().bob.plain(CHAIN, 0, Order::buy(5_000, 0))]);
    let bytes = market.encode();
    let back = Market::decode(&bytes).unwrap();
    assert_eq!(back.encode(), bytes);
    assert_eq!(back.hash(), market.hash());
    let (mut one, mut other) = (market, back);
    for market in [&mut one, &mut other] {
        block(market, &[opening(&orders[1])]);
    }
    assert_eq!(one.hash(), other.hash());
    for cut in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        assert!(Market::decode(&bytes[..cut]).is_err());
    }
    assert!(Market::decode(&[&bytes[..], &[0]].concat()).is_err());
}

fn carried(validator: u16, signer: usize) -> Bytes {
    let (number, message) = (7, Bytes::from_static(b"for all nodes"));
    let signature = world().validators[signer].sign(&OrderedMessage::signed(CHAIN, validator, number, &message));
    Transaction::Ordered(OrderedMessage { validator, number, message, signature }).encode()
}

#[test]
fn messages_of_nodes_have_a_place_by_their_own_validators_signature_alone() {
    let mut market = market();
    assert_eq!(market.apply(&carried(2, 1)), Err(Refusal::Signature));
    assert_eq!(market.apply(&carried(4, 1)), Err(Refusal::NoValidator));
    assert_eq!(market.apply(&carried(2, 2)), Ok(()));
    assert_eq!(market.apply(&carried(2, 2)), Err(Refusal::Again));
    assert_eq!(Market::decode(&market.encode()).unwrap().encode(), market.encode());
}

#[test]
fn transactions_have_one_encoding() {
    let tx = sealed(&world().alice, 0, Order::buy(5, 0));
    for tx in [tx.clone(), opening(&tx), word(&tx, 1), world().bob.plain(CHAIN, 0, Order::buy(1, 2)), carried(2, 2)] {
        assert_eq!(Transaction::decode(&tx).unwrap().encode(), tx);
        for cut in 0..tx.len() {
            assert!(Transaction::decode(&tx.slice(..cut)).is_err(), "{cut}");
        }
        assert!(Transaction::decode(&[&tx[..], &[0]].concat().into()).is_err());
    }
    assert_eq!(Transaction::decode(&vec![0; MOST_TX + 1].into()), Err(TransactionError::TooLong));
}

#[test]
fn a_genesis_that_makes_no_sense_is_refused() {
    let wrong = |change: &dyn Fn(&mut Genesis)| {
        let mut genesis = genesis(true);
        change(&mut genesis);
        Market::new(CHAIN, &genesis).unwrap_err().to_string()
    };
    assert!(wrong(&|genesis| genesis.key.clear()).starts_with("the key of the genesis"));
    assert!(wrong(&|genesis| genesis.validators.truncate(1)).contains("cannot outvote"));
    assert!(wrong(&|genesis| genesis.accounts[0].trader.push('0')).contains("64 hexadecimal digits"));
    let crowd = |count: u32| {
        let trader = |number: u32| hex::encode(Sha256::digest(number.to_be_bytes()));
        (0..count).map(|number| GenesisAccount { trader: trader(number), coin: 1_000_000, gold: 1_000_000 }).collect()
    };
    assert!(wrong(&|genesis| genesis.accounts = crowd(12_000)).contains("give it fewer accounts"));
    let most = Market::new(CHAIN, &Genesis { accounts: crowd(8_000), ..genesis(true) }).unwrap();
    assert_eq!(Market::decode(&most.encode()).unwrap().hash(), most.hash(), "what begins can be read again");
    let name = "x".repeat(257);
    assert!(Market::new(&name, &genesis(true)).is_err() && Market::new(&name[1..], &genesis(true)).is_ok());
    let (signing, _) = deal_any(Suite::FrostEd25519, Threshold::new(2, 4).unwrap(), &mut rng(2));
    let text = signing.to_text(&"sign".parse().unwrap());
    assert!(wrong(&|genesis| genesis.key.clone_from(&text)).contains("not for encryption"));
}
