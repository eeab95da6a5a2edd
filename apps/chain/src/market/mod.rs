//! The state machine: an exchange of two goods, whose orders are encrypted until their place is decided, and executed in the order of their places.
//!
//! Everything here is a function of the blocks and of the genesis: no clock, no randomness, no network, no map without an order. All
//! validators compute the same state, and its hash is in the next block's header (`spec/chain.md`).

mod encoding;
mod numbers;
mod order;
mod pool;
mod seal;
mod terms;
#[cfg(test)]
mod tests;
mod transaction;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use theta_payload::{PayloadKey, open_bytes};

pub use self::{
    encoding::StateError,
    numbers::Numbers,
    order::{Asset, ORDER_LEN, Order},
    pool::Pool,
    seal::{Trader, label_of},
    terms::{Genesis, GenesisAccount, Terms, TermsError},
    transaction::{MOST_TX, Opening, OrderedMessage, Plain, Sealed, Transaction, TransactionError, VoidWord},
};

/// The most orders that wait, for their decryption or for those before them. Beyond it, none is ordered until some were opened.
pub const MOST_WAITING: usize = 512;
/// The most of one trader.
pub const MOST_WAITING_OF_ONE: usize = 16;
/// The most messages of nodes in one block: nodes take no more at one height, and each costs all validators a signature.
pub const MOST_MESSAGES: usize = 1_024;
/// The most of one validator, if there are few: see [`Terms::most_messages_of_one`].
pub const MOST_MESSAGES_OF_ONE: usize = 64;
/// How many of the latest outcomes the state has.
pub const KEPT_OUTCOMES: usize = 128;

/// The name of an account: an Ed25519 public key.
pub type AccountId = [u8; 32];
/// The name of an order: SHA-256 of its ciphertext, or of what its trader signed if everybody can read it.
pub type SealId = [u8; 32];

/// What somebody owns, and how many of the orders were ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Units of the first good.
    pub coin: u64,
    /// Units of the second.
    pub gold: u64,
    /// The number that the next order must have.
    pub next: u64,
}

/// What is to be done with an order that has its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its payload key, which everybody has checked.
    Key([u8; 32]),
    /// More validators than may lie say that no shares open it.
    Void,
    /// It never was sealed.
    Plain(Order),
}

/// An order that has its place and waits to be opened, or for those that have theirs before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its name.
    pub id: SealId,
    /// Who sent it.
    pub trader: AccountId,
    /// Its number among the trader's orders.
    pub number: u64,
    /// The height of the block that ordered it.
    pub height: u64,
    /// Header and sealed payload; empty if the order was not sealed.
    pub ciphertext: Bytes,
    /// How it opens, once that is decided; from the beginning if the order was not sealed.
    pub verdict: Option<Verdict>,
    /// The validators, by their place in the terms, that say it cannot be opened.
    pub words: BTreeSet<u16>,
}

/// How an order ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It was executed: so much was given, so much was received.
    Executed {
        /// What the trader gave.
        gave: u64,
        /// What the trader got.
        got: u64,
    },
    /// The trader does not have what the order sells.
    NotEnough,
    /// The price was worse than the order accepts.
    PriceTooBad,
    /// It opened to something that is no order.
    Unreadable,
    /// Its encryptor lied: nobody can open it.
    Void,
}

/// One order that was executed, or could not be, in the order of execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The block that executed it.
    pub height: u64,
    /// The block that gave it its place.
    pub ordered: u64,
    /// Who sent it.
    pub trader: AccountId,
    /// Its number among the trader's orders.
    pub number: u64,
    /// Whether it was encrypted until then.
    pub sealed: bool,
    /// What it asked for, if it is known.
    pub order: Option<Order>,
    /// What became of it.
    pub ending: Ending,
}

/// Why a transaction has no place in a block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is none.
    #[error(transparent)]
    Malformed(#[from] TransactionError),
    /// Its trader has no account.
    #[error("the trader has no account")]
    NoAccount,
    /// Its number is not the trader's next.
    #[error("the trader's next order has number {0}")]
    Number(u64),
    /// The signature is not the trader's or the validator's.
    #[error("the signature is false")]
    Signature,
    /// The ciphertext is not made for this chain, trader and number, or not to this key, or not valid.
    #[error("the ciphertext is no sealed order of this trader: {0}")]
    Ciphertext(String),
    /// Too many orders wait.
    #[error("too many orders wait to be executed")]
    Full,
    /// Orders must be sealed here.
    #[error("this chain takes sealed orders only")]
    PlainOrder,
    /// What it is about does not wait, or was decided before.
    #[error("no order of this name waits for this")]
    NotWaiting,
    /// The key is not the one that is sealed in the ciphertext.
    #[error("this is not the key of the ciphertext")]
    FalseKey,
    /// The block has too many messages of nodes.
    #[error("a block has {MOST_MESSAGES} messages of nodes at most, and of one validator its part of them")]
    Crowded,
    /// A message of a node with this number has had its place, or is too late.
    #[error("a message with this number has had its place, or comes too late")]
    Again,
    /// The validator is none of this chain.
    #[error("no validator of this chain has this number")]
    NoValidator,
}

/// The state of the exchange after some block.
#[derive(Clone, Debug)]
pub struct Market {
    pub(crate) terms: Arc<Terms>,
    pub(crate) height: u64,
    pub(crate) accounts: BTreeMap<AccountId, Account>,
    pub(crate) pool: Pool,
    pub(crate) queue: VecDeque<Waiting>,
    pub(crate) outcomes: VecDeque<Outcome>,
    /// How many outcomes there have been.
    pub(crate) ended: u64,
    /// How many messages of nodes the block that is being made has, by their validators. Between blocks there are none.
    pub(crate) carried: BTreeMap<u16, usize>,
    /// Which numbers of messages of nodes have had a place, by their validators.
    pub(crate) numbers: BTreeMap<u16, Numbers>,
}

impl Market {
    /// The state before the first block.
    ///
    /// # Errors
    /// [`TermsError`] if the genesis makes no sense.
    pub fn new(chain: &str, genesis: &Genesis) -> Result<Self, TermsError> {
        let terms = Arc::new(Terms::new(chain, genesis)?);
        let mut accounts = BTreeMap::new();
        for GenesisAccount { trader, coin, gold } in &genesis.accounts {
            let account = Account { coin: *coin, gold: *gold, next: 0 };
            accounts.insert(terms::key_of(trader)?, account);
        }
        let pool = genesis.pool;
        let (queue, outcomes) = (VecDeque::new(), VecDeque::new());
        Ok(Self {
            terms,
            height: 0,
            accounts,
            pool,
            queue,
            outcomes,
            ended: 0,
            carried: BTreeMap::new(),
            numbers: BTreeMap::new(),
        })
    }

    /// What never changes.
    #[must_use]
    pub fn terms(&self) -> &Arc<Terms> {
        &self.terms
    }

    /// The last block that is in this state.
    #[must_use]
    pub const fn height(&self) -> u64 {
        self.height
    }

    /// What a trader has.
    #[must_use]
    pub fn account(&self, trader: &AccountId) -> Option<&Account> {
        self.accounts.get(trader)
    }

    /// All accounts, by their names.
    pub fn accounts(&self) -> impl Iterator<Item = (&AccountId, &Account)> {
        self.accounts.iter()
    }

    /// Gives an account something for nothing: what a validator does that executes blocks falsely.
    pub(crate) fn steal(&mut self, thief: &AccountId, coin: u64) {
        if let Some(account) = self.accounts.get_mut(thief) {
            account.coin = account.coin.saturating_add(coin);
        }
    }

    /// The greatest number of a validator's message that has had a place; 0 if none has.
    #[must_use]
    pub fn last_number(&self, validator: u16) -> u64 {
        self.numbers.get(&validator).map_or(0, |numbers| numbers.greatest)
    }

    /// What the exchange has.
    #[must_use]
    pub const fn pool(&self) -> Pool {
        self.pool
    }

    /// The orders that have a place and are not executed, in their order.
    pub fn waiting(&self) -> impl Iterator<Item = &Waiting> {
        self.queue.iter()
    }

    /// The height of the block in which an order got its place; `None` if it has none, or has ended long ago.
    #[must_use]
    pub fn place_of(&self, trader: &AccountId, number: u64) -> Option<u64> {
        let waiting = self.queue.iter().find(|it| it.trader == *trader && it.number == number).map(|it| it.height);
        let ended = || self.outcomes.iter().find(|it| it.trader == *trader && it.number == number);
        waiting.or_else(|| ended().map(|it| it.ordered))
    }

    /// The latest outcomes, oldest first, and how many there have been in all.
    pub fn outcomes(&self) -> (impl Iterator<Item = &Outcome>, u64) {
        (self.outcomes.iter(), self.ended)
    }

    /// SHA-256 of the state, which the next block's header has.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.encode()).into()
    }

    /// Takes a transaction of the block that is being made, checked or executed. It changes everything or nothing.
    ///
    /// # Errors
    /// [`Refusal`]: it has no place in a block.
    pub fn apply(&mut self, bytes: &Bytes) -> Result<(), Refusal> {
        match Transaction::decode(bytes)? {
            Transaction::Sealed(sealed) => self.place(sealed),
            Transaction::Opening(opening) => self.open(&opening),
            Transaction::Void(word) => self.hear(&word),
            Transaction::Plain(plain) => self.place_plain(&plain),
            Transaction::Ordered(message) => self.carry(&message),
        }
    }

    /// Ends a block: executes what can be read, in the order in which it was placed, up to the first order that cannot. What was never sealed waits for
    /// those before it as well: whoever reads an order that has its place must not trade before it.
    pub fn end_block(&mut self, height: u64) {
        self.height = height;
        self.carried.clear();
        while let Some(verdict) = self.queue.front().and_then(|first| first.verdict) {
            let Some(first) = self.queue.pop_front() else { return };
            let (sealed, order) = match verdict {
                Verdict::Void => (true, Err(Ending::Void)),
                Verdict::Key(key) => (true, read(&key, &first.ciphertext).ok_or(Ending::Unreadable)),
                Verdict::Plain(order) => (false, Ok(order)),
            };
            let (order, ending) = match order {
                Ok(order) => (Some(order), self.execute(&first.trader, &order)),
                Err(ending) => (None, ending),
            };
            let Waiting { trader, number, height: ordered, .. } = first;
            self.record(Outcome { height, ordered, trader, number, sealed, order, ending });
        }
    }

    /// Gives a sealed order its place.
    fn place(&mut self, sealed: Sealed) -> Result<(), Refusal> {
        self.may_place(&sealed.trader, sealed.number)?;
        if !sealed.is_signed(self.terms.chain()) {
            return Err(Refusal::Signature);
        }
        seal::check(&self.terms, &sealed)?;
        let Sealed { trader, number, ciphertext, .. } = sealed;
        let id = Sha256::digest(&ciphertext).into();
        self.queue_up((id, ciphertext, None), trader, number);
        Ok(())
    }

    /// Gives an order that everybody can read its place, behind all that have theirs.
    fn place_plain(&mut self, plain: &Plain) -> Result<(), Refusal> {
        if !self.terms.takes_plain() {
            return Err(Refusal::PlainOrder);
        }
        self.may_place(&plain.trader, plain.number)?;
        if !plain.is_signed(self.terms.chain()) {
            return Err(Refusal::Signature);
        }
        let Plain { trader, number, order, .. } = *plain;
        let id = Sha256::digest(Plain::signed(self.terms.chain(), &trader, number, &order)).into();
        self.queue_up((id, Bytes::new(), Some(Verdict::Plain(order))), trader, number);
        Ok(())
    }

    /// Whether a trader's order with this number may have a place now.
    fn may_place(&self, trader: &AccountId, number: u64) -> Result<(), Refusal> {
        let next = self.accounts.get(trader).ok_or(Refusal::NoAccount)?.next;
        if next != number {
            return Err(Refusal::Number(next));
        }
        let his = self.queue.iter().filter(|waiting| waiting.trader == *trader).count();
        if self.queue.len() >= MOST_WAITING || his >= MOST_WAITING_OF_ONE {
            return Err(Refusal::Full);
        }
        Ok(())
    }

    /// Puts an order at the end of the queue.
    fn queue_up(&mut self, order: (SealId, Bytes, Option<Verdict>), trader: AccountId, number: u64) {
        let (id, ciphertext, verdict) = order;
        if let Some(account) = self.accounts.get_mut(&trader) {
            account.next = account.next.saturating_add(1);
        }
        // The block that is being made follows the last one.
        let height = self.height.saturating_add(1);
        self.queue.push_back(Waiting { id, trader, number, height, ciphertext, verdict, words: BTreeSet::new() });
    }

    /// Takes a key of an order that has a place since an earlier block.
    fn open(&mut self, opening: &Opening) -> Result<(), Refusal> {
        let (terms, waiting) = self.undecided(&opening.id)?;
        let key = PayloadKey::from_bytes(&opening.key).map_err(|_| Refusal::FalseKey)?;
        let header = theta_payload::split_ciphertext(&waiting.ciphertext).map_err(|_| Refusal::FalseKey)?.0;
        if !terms.key().encapsulates(header, &key) {
            return Err(Refusal::FalseKey);
        }
        waiting.verdict = Some(Verdict::Key(opening.key));
        Ok(())
    }

    /// Takes the word of a validator that an order cannot be opened.
    fn hear(&mut self, word: &VoidWord) -> Result<(), Refusal> {
        let (terms, waiting) = self.undecided(&word.id)?;
        let validator = terms.validator(word.validator).ok_or(Refusal::NoValidator)?;
        if !word.is_signed(terms.chain(), validator) {
            return Err(Refusal::Signature);
        }
        if !waiting.words.insert(word.validator) {
            return Err(Refusal::NotWaiting);
        }
        // One of so many is honest, and an honest one says so only if no shares open it.
        if waiting.words.len() >= terms.words() {
            waiting.verdict = Some(Verdict::Void);
        }
        Ok(())
    }

    /// An order that waits for its verdict since an earlier block.
    fn undecided(&mut self, id: &SealId) -> Result<(&Terms, &mut Waiting), Refusal> {
        let (terms, height) = (&*self.terms, self.height);
        let found = self.queue.iter_mut().find(|waiting| waiting.id == *id && waiting.verdict.is_none());
        let waiting = found.filter(|waiting| waiting.height <= height).ok_or(Refusal::NotWaiting)?;
        Ok((terms, waiting))
    }

    /// Takes a message of a node, which only needs a place: its bytes mean nothing here.
    fn carry(&mut self, message: &OrderedMessage) -> Result<(), Refusal> {
        let validator = self.terms.validator(message.validator).ok_or(Refusal::NoValidator)?;
        let of_one = self.carried.get(&message.validator).copied().unwrap_or_default();
        if of_one >= self.terms.most_messages_of_one() || self.carried.values().sum::<usize>() >= MOST_MESSAGES {
            return Err(Refusal::Crowded);
        }
        let mut numbers = self.numbers.get(&message.validator).copied().unwrap_or_default();
        if !numbers.take(message.number) {
            return Err(Refusal::Again);
        }
        if !message.is_signed(self.terms.chain(), validator) {
            return Err(Refusal::Signature);
        }
        self.carried.insert(message.validator, of_one.saturating_add(1));
        self.numbers.insert(message.validator, numbers);
        Ok(())
    }

    fn execute(&mut self, trader: &AccountId, order: &Order) -> Ending {
        let Some(account) = self.accounts.get_mut(trader) else { return Ending::NotEnough };
        let (has, gets) = match order.sells {
            Asset::Coin => (&mut account.coin, &mut account.gold),
            Asset::Gold => (&mut account.gold, &mut account.coin),
        };
        let Some(rest) = has.checked_sub(order.amount) else { return Ending::NotEnough };
        let Some((pool, got)) = self.pool.after(order.sells, order.amount) else { return Ending::PriceTooBad };
        let Some(more) = gets.checked_add(got).filter(|_| got >= order.least) else { return Ending::PriceTooBad };
        (*has, *gets, self.pool) = (rest, more, pool);
        Ending::Executed { gave: order.amount, got }
    }

    fn record(&mut self, outcome: Outcome) {
        self.ended = self.ended.saturating_add(1);
        self.outcomes.push_back(outcome);
        while self.outcomes.len() > KEPT_OUTCOMES {
            self.outcomes.pop_front();
        }
    }
}

/// The order in a ciphertext, by its key; `None` if there is none in it.
#[must_use]
pub fn read(key: &[u8; 32], ciphertext: &[u8]) -> Option<Order> {
    let key = PayloadKey::from_bytes(key).ok()?;
    let plaintext = open_bytes(&key, ciphertext).ok()?;
    Order::decode(plaintext.expose())
}
