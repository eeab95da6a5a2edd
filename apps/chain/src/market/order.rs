//! What a trader wants.

use serde::{Deserialize, Serialize};

/// The length of an order in bytes. All have the same, so that the length of a ciphertext tells nothing.
pub const ORDER_LEN: usize = 64;

const FORMAT: u8 = 1;

/// One of the two goods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asset {
    /// The first.
    Coin,
    /// The second.
    Gold,
}

/// Give so much of one good to the exchange, for at least so much of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// What is given.
    pub sells: Asset,
    /// How much.
    pub amount: u64,
    /// The least that is taken for it.
    pub least: u64,
}

impl Order {
    /// Gives this much coin for gold.
    #[must_use]
    pub const fn buy(coin: u64, least: u64) -> Self {
        Self { sells: Asset::Coin, amount: coin, least }
    }

    /// Gives this much gold for coin.
    #[must_use]
    pub const fn sell(gold: u64, least: u64) -> Self {
        Self { sells: Asset::Gold, amount: gold, least }
    }

    /// Format (1), what is sold (1), amount (8), least (8), zeros.
    #[must_use]
    pub fn encode(&self) -> [u8; ORDER_LEN] {
        let mut bytes = [0; ORDER_LEN];
        let sells = u8::from(self.sells == Asset::Gold);
        let (amount, least) = (self.amount.to_be_bytes(), self.least.to_be_bytes());
        let fields = [FORMAT, sells].into_iter().chain(amount).chain(least);
        for (byte, field) in bytes.iter_mut().zip(fields) {
            *byte = field;
        }
        bytes
    }

    /// The order, if these bytes are the encoding of one.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (fields, zeros) = bytes.split_first_chunk::<18>()?;
        let (&[format, sells], rest) = fields.split_first_chunk::<2>()?;
        let (amount, rest) = rest.split_first_chunk::<8>()?;
        let least = rest.first_chunk::<8>()?;
        let sells = match sells {
            0 => Asset::Coin,
            1 => Asset::Gold,
            _ => return None,
        };
        let whole = format == FORMAT && bytes.len() == ORDER_LEN && zeros.iter().all(|byte| *byte == 0);
        let (amount, least) = (u64::from_be_bytes(*amount), u64::from_be_bytes(*least));
        whole.then_some(Self { sells, amount, least })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_have_one_encoding() {
        for order in [Order::buy(5, 3), Order::sell(u64::MAX, 0)] {
            let bytes = order.encode();
            assert_eq!(Order::decode(&bytes), Some(order));
            assert_eq!(Order::decode(&bytes[..ORDER_LEN - 1]), None);
            for place in [0, 1, 18, ORDER_LEN - 1] {
                let mut other = bytes;
                other[place] = 7;
                assert_eq!(Order::decode(&other), None, "byte {place}");
            }
        }
    }
}
