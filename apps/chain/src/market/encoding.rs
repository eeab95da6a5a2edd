//! The state as bytes: what is hashed, and what a validator keeps on its disk.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use theta_names::codec::{DecodeError, Reader, Writer};

use super::{
    Account, Ending, Genesis, KEPT_OUTCOMES, MOST_TX, MOST_WAITING, Market, Numbers, ORDER_LEN, Order, Outcome, Pool,
    Terms, TermsError, Verdict, Waiting,
    terms::{MOST_GENESIS, MOST_NAME},
};

const DOMAIN: &str = "theta/chain/state/v3";

/// Bytes that are no state.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The encoding.
    #[error("no state: {0}")]
    Malformed(#[from] DecodeError),
    /// What the chain began with, in the state.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// The same.
    #[error("the genesis in the state: {0}")]
    Genesis(#[from] serde_json::Error),
}

impl Market {
    /// The state as bytes: one encoding for each state.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let genesis = self.terms.genesis().encode();
        let mut writer = Writer::of(DOMAIN).text(self.terms.chain()).bytes(&genesis).u64(self.height);
        writer = writer.u64(self.pool.coin).u64(self.pool.gold).u64(self.ended);
        writer = writer.u32(count(self.accounts.len()));
        for (id, account) in &self.accounts {
            writer = writer.raw(id).u64(account.coin).u64(account.gold).u64(account.next);
        }
        writer = writer.u32(count(self.queue.len()));
        writer = self.queue.iter().fold(writer, write_waiting);
        writer = writer.u32(count(self.outcomes.len()));
        writer = self.outcomes.iter().fold(writer, write_outcome).u32(count(self.numbers.len()));
        let write = |writer: Writer, (validator, numbers): (&u16, &Numbers)| {
            writer.u16(*validator).u64(numbers.greatest).u64(numbers.recent)
        };
        self.numbers.iter().fold(writer, write).finish()
    }

    /// The state that these bytes are the encoding of.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, StateError> {
        let mut reader = Reader::of(bytes, DOMAIN)?;
        let chain = reader.text(MOST_NAME)?.to_owned();
        let genesis: Genesis = serde_json::from_slice(reader.bytes_within(MOST_GENESIS)?)?;
        let terms = Arc::new(Terms::new(&chain, &genesis)?);
        let height = reader.u64()?;
        let pool = Pool { coin: reader.u64()?, gold: reader.u64()? };
        let ended = reader.u64()?;
        let mut accounts = BTreeMap::new();
        for _ in 0..reader.u32()? {
            let id = reader.array()?;
            accounts.insert(id, Account { coin: reader.u64()?, gold: reader.u64()?, next: reader.u64()? });
        }
        let mut queue = VecDeque::new();
        for _ in 0..within(reader.u32()?, MOST_WAITING)? {
            queue.push_back(read_waiting(&mut reader)?);
        }
        let mut outcomes = VecDeque::new();
        for _ in 0..within(reader.u32()?, KEPT_OUTCOMES)? {
            outcomes.push_back(read_outcome(&mut reader)?);
        }
        let (carried, mut numbers) = (BTreeMap::new(), BTreeMap::new());
        for _ in 0..within(reader.u32()?, usize::from(u16::MAX))? {
            numbers.insert(reader.u16()?, Numbers { greatest: reader.u64()?, recent: reader.u64()? });
        }
        Ok(reader.end(Self { terms, height, accounts, pool, queue, outcomes, ended, carried, numbers })?)
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

fn within(count: u32, most: usize) -> Result<u32, DecodeError> {
    if usize::try_from(count).is_ok_and(|count| count <= most) {
        Ok(count)
    } else {
        Err(DecodeError::Field("too many of something"))
    }
}

fn write_waiting(writer: Writer, waiting: &Waiting) -> Writer {
    let Waiting { id, trader, number, height, ciphertext, verdict, words } = waiting;
    let writer = writer.raw(id).raw(trader).u64(*number).u64(*height).bytes(ciphertext);
    let writer = match verdict {
        None => writer.u8(0),
        Some(Verdict::Void) => writer.u8(1),
        Some(Verdict::Key(key)) => writer.u8(2).raw(key),
        Some(Verdict::Plain(order)) => writer.u8(3).raw(&order.encode()),
    };
    words.iter().fold(writer.u32(count(words.len())), |writer, word| writer.u16(*word))
}

fn read_waiting(reader: &mut Reader<'_>) -> Result<Waiting, DecodeError> {
    let (id, trader) = (reader.array()?, reader.array()?);
    let (number, height) = (reader.u64()?, reader.u64()?);
    let ciphertext = Bytes::copy_from_slice(reader.bytes_within(MOST_TX)?);
    let verdict = match reader.u8()? {
        0 => None,
        1 => Some(Verdict::Void),
        2 => Some(Verdict::Key(reader.array()?)),
        3 => Some(Verdict::Plain(read_order(reader)?)),
        _ => return Err(DecodeError::Field("a verdict")),
    };
    let mut words = BTreeSet::new();
    for _ in 0..within(reader.u32()?, usize::from(u16::MAX))? {
        words.insert(reader.u16()?);
    }
    Ok(Waiting { id, trader, number, height, ciphertext, verdict, words })
}

fn write_outcome(writer: Writer, outcome: &Outcome) -> Writer {
    let Outcome { height, ordered, trader, number, sealed, order, ending } = outcome;
    let writer = writer.u64(*height).u64(*ordered).raw(trader).u64(*number).flag(*sealed);
    let writer = match order {
        None => writer.u8(0),
        Some(order) => writer.u8(1).raw(&order.encode()),
    };
    match ending {
        Ending::Executed { gave, got } => writer.u8(0).u64(*gave).u64(*got),
        Ending::NotEnough => writer.u8(1),
        Ending::PriceTooBad => writer.u8(2),
        Ending::Unreadable => writer.u8(3),
        Ending::Void => writer.u8(4),
    }
}

fn read_outcome(reader: &mut Reader<'_>) -> Result<Outcome, DecodeError> {
    let (height, ordered) = (reader.u64()?, reader.u64()?);
    let (trader, number, sealed) = (reader.array()?, reader.u64()?, reader.flag()?);
    let order = match reader.u8()? {
        0 => None,
        1 => Some(read_order(reader)?),
        _ => return Err(DecodeError::Field("an order or none")),
    };
    let ending = match reader.u8()? {
        0 => Ending::Executed { gave: reader.u64()?, got: reader.u64()? },
        1 => Ending::NotEnough,
        2 => Ending::PriceTooBad,
        3 => Ending::Unreadable,
        4 => Ending::Void,
        _ => return Err(DecodeError::Field("an ending")),
    };
    Ok(Outcome { height, ordered, trader, number, sealed, order, ending })
}

fn read_order(reader: &mut Reader<'_>) -> Result<Order, DecodeError> {
    Order::decode(reader.take(ORDER_LEN)?).ok_or(DecodeError::Field("an order"))
}
