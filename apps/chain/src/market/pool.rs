//! The exchange's own stock, at a price that moves with each trade.

use serde::{Deserialize, Serialize};

use super::Asset;

/// What the exchange has of both goods. The product of the two never falls, so that whoever buys raises the price for the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Units of the first good.
    pub coin: u64,
    /// Units of the second.
    pub gold: u64,
}

impl Pool {
    /// The stock after somebody gave so much of one good, and what is given for it: rounded down, and never all there is. `None` if it
    /// cannot be stored or nothing would be given.
    #[must_use]
    pub fn after(self, sells: Asset, amount: u64) -> Option<(Self, u64)> {
        let (into, out_of) = match sells {
            Asset::Coin => (self.coin, self.gold),
            Asset::Gold => (self.gold, self.coin),
        };
        let more = into.checked_add(amount)?;
        let gives = u128::from(out_of).checked_mul(u128::from(amount))?.checked_div(u128::from(more))?;
        let gives = u64::try_from(gives).ok().filter(|gives| *gives > 0 && *gives < out_of)?;
        let rest = out_of.checked_sub(gives)?;
        let after = match sells {
            Asset::Coin => Self { coin: more, gold: rest },
            Asset::Gold => Self { coin: rest, gold: more },
        };
        Some((after, gives))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_more_out_than_the_product_allows() {
        let mut pool = Pool { coin: 1_000_000, gold: 1_000 };
        for (sells, amount) in [(Asset::Coin, 9), (Asset::Coin, 500_000), (Asset::Gold, 1), (Asset::Gold, 333)] {
            let product = |pool: Pool| u128::from(pool.coin) * u128::from(pool.gold);
            if let Some((after, gives)) = pool.after(sells, amount) {
                assert!(product(after) >= product(pool) && gives > 0);
                pool = after;
            }
        }
        assert!(pool.after(Asset::Gold, u64::MAX).is_none(), "it cannot be stored");
        assert!(pool.after(Asset::Coin, 0).is_none(), "nothing for nothing");
        assert!(Pool { coin: u64::MAX - 1, gold: 5 }.after(Asset::Gold, u64::MAX - 6).is_some());
    }

    /// What a front-runner does, and why it pays: the order in which the same trades are made decides who gains.
    #[test]
    fn who_trades_first_gains() {
        let pool = Pool { coin: 1_000_000, gold: 1_000_000 };
        let (_, undisturbed) = pool.after(Asset::Coin, 100_000).unwrap();
        let (pool, bought) = pool.after(Asset::Coin, 50_000).unwrap();
        let (pool, victim) = pool.after(Asset::Coin, 100_000).unwrap();
        let (_, sold) = pool.after(Asset::Gold, bought).unwrap();
        assert!(victim < undisturbed && sold > 50_000, "{victim} < {undisturbed}, {sold}");
    }
}
