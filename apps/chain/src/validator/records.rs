//! What a validator shows of itself, and what it remembers of others, beside the chain's state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Attempt;
use crate::market::{Account, Ending, Market, Order, Outcome, Pool};

/// How many proposals that it refused a validator remembers.
pub(super) const KEPT_REJECTIONS: usize = 64;

/// A proposal that a validator refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// The height.
    pub height: i64,
    /// The proposer's address, in hexadecimal digits.
    pub proposer: String,
    /// What was wrong.
    pub reason: String,
}

/// An account as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountView {
    /// Units of the first good.
    pub coin: u64,
    /// Units of the second.
    pub gold: u64,
    /// The number of the next order.
    pub next: u64,
}

/// An order that has ended, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeView {
    /// The block that executed it.
    pub height: u64,
    /// The block that gave it its place.
    pub ordered: u64,
    /// Who sent it.
    pub trader: String,
    /// Its number among the trader's orders.
    pub number: u64,
    /// Whether it was encrypted until then.
    pub sealed: bool,
    /// What it asked for, if it is known.
    pub order: Option<Order>,
    /// What became of it.
    pub ending: Ending,
}

/// What a validator answers to `abci_query` with the path `/view`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The last block that it executed and keeps.
    pub height: u64,
    /// SHA-256 of the state after it.
    pub hash: String,
    /// What the exchange has.
    pub pool: Pool,
    /// All accounts, by their names.
    pub accounts: BTreeMap<String, AccountView>,
    /// How many orders have a place and wait.
    pub waiting: usize,
    /// How many orders have ended.
    pub ended: u64,
    /// The latest of them, oldest first.
    pub outcomes: Vec<OutcomeView>,
    /// Proposals that it refused, oldest first.
    pub rejections: Vec<Rejection>,
    /// What it tried, if it looks for orders to trade before.
    pub attempts: Vec<Attempt>,
}

impl View {
    /// An account; zeros if there is none.
    #[must_use]
    pub fn account(&self, id: &[u8; 32]) -> AccountView {
        self.accounts.get(&hex::encode(id)).copied().unwrap_or(AccountView { coin: 0, gold: 0, next: 0 })
    }

    /// How an order ended, by its trader and number.
    #[must_use]
    pub fn outcome(&self, trader: &[u8; 32], number: u64) -> Option<&OutcomeView> {
        let trader = hex::encode(trader);
        self.outcomes.iter().find(|outcome| outcome.trader == trader && outcome.number == number)
    }

    pub(super) fn of(market: &Market, rejections: Vec<Rejection>, attempts: Vec<Attempt>) -> Self {
        let account = |(id, account): (&[u8; 32], &Account)| {
            let Account { coin, gold, next } = *account;
            (hex::encode(id), AccountView { coin, gold, next })
        };
        let (outcomes, ended) = market.outcomes();
        let shown = |outcome: &Outcome| {
            let Outcome { height, ordered, trader, number, sealed, order, ending } = *outcome;
            OutcomeView { height, ordered, trader: hex::encode(trader), number, sealed, order, ending }
        };
        Self {
            height: market.height(),
            hash: hex::encode(market.hash()),
            pool: market.pool(),
            accounts: market.accounts().map(account).collect(),
            waiting: market.waiting().count(),
            ended,
            outcomes: outcomes.map(shown).collect(),
            rejections,
            attempts,
        }
    }
}
