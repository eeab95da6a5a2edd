//! What a dishonest validator tries, with one node of the group at its side.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use theta_client::Client;
use tokio::time::{Instant, sleep};
use tonic::Code;

use super::{
    Rpc, Validator, ValidatorFile,
    opener::{Answer, ask},
};
use crate::market::{Asset, Market, Order, SealId, Sealed, Trader, Transaction};

/// How many sealed orders it remembers.
const MOST_SEEN: usize = 256;
/// How long it waits for its own node, and for others.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// How long an order may take to get a place.
const PLACING: Duration = Duration::from_secs(20);

/// What it tried with one sealed order, before that had its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The order's name.
    pub id: String,
    /// What its own node said.
    pub own_node: String,
    /// What each of the other nodes said.
    pub other_nodes: Vec<String>,
    /// What became of the ciphertext under its own name.
    pub copy: String,
    /// Whether it knew the order before that had its place.
    pub in_time: bool,
}

/// What it knows.
#[derive(Default)]
pub(super) struct Spy {
    known: BTreeSet<SealId>,
    untried: VecDeque<(SealId, Sealed)>,
    attempts: Vec<Attempt>,
    /// Orders that it could read although they were sealed.
    read: BTreeMap<SealId, Order>,
}

impl Spy {
    pub(super) fn attempts(&self) -> Vec<Attempt> {
        self.attempts.clone()
    }

    /// Sees a transaction that waits for a place.
    pub(super) fn see(&mut self, tx: &Bytes) {
        if self.known.len() >= MOST_SEEN {
            return;
        }
        if let Ok(Transaction::Sealed(sealed)) = Transaction::decode(tx) {
            let id = name_of(&sealed);
            if self.known.insert(id) {
                self.untried.push_back((id, sealed));
            }
        }
    }

    /// The transactions of a block in the order that pays most, with its own around those that it can read.
    pub(super) fn arrange(&self, market: &Market, account: &Trader, txs: Vec<Bytes>) -> Vec<Bytes> {
        let chain = market.terms().chain();
        let Some(own) = market.account(account.id()) else { return txs };
        let (mut number, mut coin, mut pool) = (own.next, own.coin, market.pool());
        let mut arranged = Vec::new();
        let mut sealed = Vec::new();
        for tx in txs {
            let victim = match Transaction::decode(&tx) {
                Ok(Transaction::Plain(plain)) if plain.trader != *account.id() => Some(plain.order),
                Ok(Transaction::Sealed(it)) => {
                    let order = self.read.get(&name_of(&it)).copied();
                    if order.is_none() {
                        sealed.push((it.trader, tx));
                        continue;
                    }
                    order
                }
                _ => None,
            };
            // Whoever buys raises the price: buy before, sell after.
            let before = victim.filter(|order| order.sells == Asset::Coin).map(|order| (order.amount / 2).min(coin));
            let trade = before.and_then(|amount| Some((amount, pool.after(Asset::Coin, amount)?.1)));
            let Some((amount, bought)) = trade else {
                arranged.push(tx);
                continue;
            };
            arranged.push(account.plain(chain, number, Order::buy(amount, 0)));
            arranged.push(tx);
            arranged.push(account.plain(chain, number.saturating_add(1), Order::sell(bought, 0)));
            (number, coin) = (number.saturating_add(2), coin.saturating_sub(amount));
            for (sells, amount) in
                [(Asset::Coin, amount), (Asset::Coin, victim.map_or(0, |order| order.amount)), (Asset::Gold, bought)]
            {
                pool = pool.after(sells, amount).map_or(pool, |(after, _)| after);
            }
        }
        // What it cannot read it can put into any order that keeps each trader's own.
        sealed.sort_by_key(|(trader, _)| Reverse(*trader));
        arranged.extend(sealed.into_iter().map(|(_, tx)| tx));
        arranged
    }
}

fn name_of(sealed: &Sealed) -> SealId {
    use sha2::Digest as _;
    sha2::Sha256::digest(&sealed.ciphertext).into()
}

/// Tries to open every sealed order that it sees, as soon as it sees it.
pub(super) async fn look(validator: Arc<Validator>, client: Client, file: ValidatorFile) {
    loop {
        while let Some((id, sealed)) = validator.spy(|spy| spy.untried.pop_front()) {
            let (validator, client, file) = (Arc::clone(&validator), client.clone(), file.clone());
            tokio::spawn(async move {
                let Some(market) = validator.market() else { return };
                let (attempt, order) = attempt(&validator, &client, &file, &market, id, &sealed).await;
                validator.spy(|spy| {
                    spy.attempts.push(attempt);
                    spy.read.extend(order.map(|order| (id, order)));
                });
            });
        }
        sleep(Duration::from_millis(5)).await;
    }
}

async fn attempt(
    validator: &Validator,
    client: &Client,
    file: &ValidatorFile,
    market: &Market,
    id: SealId,
    sealed: &Sealed,
) -> (Attempt, Option<Order>) {
    let (terms, ciphertext) = (market.terms(), &sealed.ciphertext);
    let nodes: Vec<u16> =
        client.group().nodes().iter().map(|node| node.id.get()).filter(|node| *node != file.node).collect();
    let others = async {
        let mut said = Vec::new();
        for node in nodes {
            let answer = ask(client, node, terms, ciphertext, PATIENCE).await;
            said.push(format!("node {node}: {}", words(answer.as_ref().map(|_| ()))));
        }
        said
    };
    let copy = async {
        let Some(account) = validator.account() else { return "no account".to_owned() };
        let number = market.account(account.id()).map_or(0, |account| account.next);
        let copy = account.sealed_as(terms.chain(), number, ciphertext.clone());
        match Rpc::new(&file.rpc).broadcast(&copy).await {
            Ok((0, _)) => "taken".to_owned(),
            Ok((_, log)) => format!("refused: {log}"),
            Err(error) => error.to_string(),
        }
    };
    let (own, other_nodes, copy) = tokio::join!(ask(client, file.node, terms, ciphertext, PATIENCE), others, copy);
    let key = match &own {
        Ok(Answer::Key(key)) => Some(*key),
        _ => None,
    };
    let order = key.and_then(|key| crate::market::read(&key, ciphertext));
    let (mut in_time, mut own_node) = (false, words(own.as_ref().map(|_| ())));
    if order.is_some() {
        let (last, place) = (validator.market().map_or(0, |market| market.height()), place(validator, sealed).await);
        // The block after the last one here may have been decided already, although this validator has not heard of it; only a place in
        // a later block is too late.
        in_time = place.is_none_or(|height| height > last.saturating_add(1));
        own_node = match place {
            Some(height) => format!("answered, when the order had its place in block {height}"),
            None => "answered, and the order has no place".to_owned(),
        };
    }
    (Attempt { id: hex::encode(id), own_node, other_nodes, copy, in_time }, order)
}

/// The height in which an order has its place, as soon as this validator knows it; `None` if it gets none for long.
async fn place(validator: &Validator, sealed: &Sealed) -> Option<u64> {
    let until = Instant::now() + PLACING;
    loop {
        let place = validator.market().and_then(|market| market.place_of(&sealed.trader, sealed.number));
        if place.is_some() || Instant::now() > until {
            return place;
        }
        sleep(Duration::from_millis(20)).await;
    }
}

fn words(answer: Result<(), &tonic::Status>) -> String {
    match answer {
        Ok(()) => "answered".to_owned(),
        Err(status) if status.message() == "Timeout expired" => format!("gives no answer within {PATIENCE:?}"),
        // What is left of a connection that a node ends because it does not know the client.
        Err(status) if matches!(status.code(), Code::Cancelled | Code::Unknown) => {
            format!("ends the connection ({})", status.message())
        }
        Err(status) => format!("{:?}: {}", status.code(), status.message()),
    }
}
