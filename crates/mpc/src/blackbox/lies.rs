//! A party that lies in a product, knows by the coins what is made of that, and lies once more so that both may cancel. (That a single changed message is
//! noticed is tested in `tests/mpc/cheating.rs`.)

use core::future::Future;
use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use theta_groups::{P256, Scalar as _, Secret};
use theta_names::ShareIndex;

use super::{
    BlackBox, Element, Products, Reserve, Scalar, Shared, SharedPoints, Unverified, multiply, prepare_opening,
    products::{FOLD, coefficients},
};
use crate::{ActiveRep3, ActiveShamir, Party, Stop, program::among};

/// Where the second lie is: in which sum of the reductions after the products themselves; and whether it takes away what the first one has come to, or adds
/// as much.
#[derive(Clone, Copy, Debug)]
struct Second {
    reduction: usize,
    place: usize,
    takes_away: bool,
}

/// A party that follows the protocol, but for two lies in sums.
struct Liar<B: Products> {
    inner: B,
    unverified: Unverified<Self>,
    reserve: Reserve<Self>,
    second: Second,
    /// What the first lie has come to in the claim; `None` before it.
    error: Mutex<Option<Scalar<B>>>,
    reductions: AtomicUsize,
    coins: AtomicUsize,
}

fn of<A: BlackBox, B: BlackBox<Cell = A::Cell>>(shared: &Shared<A>) -> Shared<B> {
    Shared::from_cells(shared.cells().iter().copied())
}

impl<B: Products> Liar<B> {
    fn new(inner: B, second: Second) -> Self {
        let (reductions, coins) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self {
            inner,
            unverified: Unverified::default(),
            reserve: Reserve::default(),
            second,
            error: Mutex::new(None),
            reductions,
            coins,
        }
    }
}

impl<B: Products> Products for Liar<B> {
    fn reserve(&self) -> &Reserve<Self> {
        &self.reserve
    }

    fn local(a: &Self::Cell, b: &Self::Cell) -> Scalar<Self> {
        B::local(a, b)
    }

    async fn reduce(&self, parts: &Secret<Vec<Scalar<Self>>>) -> Result<Shared<Self>, Stop> {
        let number = self.reductions.fetch_add(1, Ordering::Relaxed);
        let mut parts = Secret::new(parts.expose().clone());
        {
            let mut error = self.error.lock().unwrap();
            if number == 0 {
                // In the last product, whose weight is the highest power of rho.
                *parts.expose_mut().last_mut().unwrap() += Scalar::<B>::ONE;
                *error = Some(Scalar::<B>::ONE);
            } else if number == self.second.reduction {
                let error = error.unwrap();
                let lie = if self.second.takes_away { Scalar::<B>::ZERO - error } else { error };
                if let Some(part) = parts.expose_mut().get_mut(self.second.place) {
                    *part += lie;
                }
            }
        }
        Ok(of(&self.inner.reduce(&parts).await?))
    }

    async fn open_parts(&self, _: &Secret<Vec<Scalar<Self>>>) -> Result<Vec<Scalar<Self>>, Stop> {
        Err(Stop::Input("nothing is shown here unverified"))
    }

    async fn open_now(&self, values: &Shared<Self>) -> Result<Vec<Scalar<Self>>, Stop> {
        let opened = self.inner.open_now(&of(values)).await?;
        if let [coin] = opened[..] {
            let mut error = self.error.lock().unwrap();
            let weight = if self.coins.fetch_add(1, Ordering::Relaxed) == 0 {
                coin
            } else {
                coefficients(2 * FOLD - 1, coin).unwrap()[FOLD - 1]
            };
            *error = error.map(|error| error * weight);
        }
        Ok(opened)
    }

    async fn open_elements_now(&self, _: &Shared<Self>) -> Result<Vec<Element<Self>>, Stop> {
        Err(Stop::Input("no elements are opened here"))
    }
}

impl<B: Products> BlackBox for Liar<B> {
    type Group = B::Group;
    type Cell = B::Cell;
    const NAME: &'static str = "a liar";
    const ACTIVE: bool = true;

    fn party(&self) -> &Party {
        self.inner.party()
    }

    fn constants(&self, values: &[Scalar<Self>]) -> Shared<Self> {
        of(&self.inner.constants(values))
    }

    async fn random(&self, count: usize) -> Result<Shared<Self>, Stop> {
        Ok(of(&self.inner.random(count).await?))
    }

    async fn input(
        &self,
        dealer: ShareIndex,
        count: usize,
        values: Option<&Secret<Vec<Scalar<Self>>>>,
    ) -> Result<Shared<Self>, Stop> {
        Ok(of(&self.inner.input(dealer, count, values).await?))
    }

    async fn multiply(&self, a: &Shared<Self>, b: &Shared<Self>) -> Result<Shared<Self>, Stop> {
        multiply(self, a, b, Some(&self.unverified)).await
    }

    async fn open(&self, values: &Shared<Self>) -> Result<Vec<Scalar<Self>>, Stop> {
        prepare_opening(self).await?;
        self.open_now(values).await
    }

    async fn open_points(&self, _: &SharedPoints<Self>) -> Result<Vec<Element<Self>>, Stop> {
        Err(Stop::Input("no elements are opened here"))
    }

    async fn open_recognised(
        &self,
        _: &Shared<Self>,
        _: impl Fn(&Scalar<Self>) -> bool + Send + Sync,
    ) -> Result<Scalar<Self>, Stop> {
        Err(Stop::Input("nothing is recognised here"))
    }

    async fn verify(&self) -> Result<(), Stop> {
        self.unverified.verify(self).await
    }
}

/// Multiplies so many pairs and opens the products; whether they are right.
async fn products<B: BlackBox>(black_box: B, count: usize) -> Result<bool, Stop> {
    let (a, b) = black_box.random(2 * count).await?.split(count);
    let c = black_box.multiply(&a, &b).await?;
    let opened = black_box.open(&a.then(&b).then(&c)).await?;
    let (factors, products) = opened.split_at(2 * count);
    let (a, b) = factors.split_at(count);
    Ok(products.iter().zip(a.iter().zip(b)).all(|(product, (a, b))| *product == *a * *b))
}

/// What the honest ones of three parties come to, of which the last is a liar, if there is one.
fn honest<B, F>(
    count: usize,
    second: Option<Second>,
    make: impl Fn(Party) -> F + Copy + Send + 'static,
) -> Vec<Option<bool>>
where
    B: Products,
    F: Future<Output = Result<B, Stop>> + Send + 'static,
{
    let report = among((2, 3), 1, move |party: Party| async move {
        let lies = second.filter(|_| party.position() == 2);
        let inner = make(party).await?;
        match lies {
            Some(second) => products(Liar::new(inner, second), count).await,
            None => products(inner, count).await,
        }
    });
    let parties = report.parties.iter().filter(|(id, _)| id.get() != 3);
    parties.map(|(_, party)| party.result.as_ref().and_then(|result| result.as_ref().ok().copied())).collect()
}

fn every_second_lie<B, F>(make: impl Fn(Party) -> F + Copy + Send + 'static)
where
    B: Products,
    F: Future<Output = Result<B, Stop>> + Send + 'static,
{
    // One product, as many as are not folded, and more: then folds come before the last step.
    for (count, reductions) in [(1, 1), (FOLD, 1), (FOLD + 1, 2), (FOLD * FOLD + 1, 3)] {
        assert_eq!(honest(count, None, make), [Some(true); 2], "without a lie");
        for reduction in 1..=reductions + 1 {
            for place in 0..2 * FOLD {
                for takes_away in [true, false] {
                    let second = Second { reduction, place, takes_away };
                    assert_eq!(honest(count, Some(second), make), [None; 2], "{count} products, {second:?}");
                }
            }
        }
    }
}

#[test]
fn two_lies_of_one_party_do_not_cancel_in_malicious_shamir() {
    every_second_lie(|party| async move { ActiveShamir::<P256>::new(&party).await });
}

#[test]
fn two_lies_of_one_party_do_not_cancel_in_malicious_rep3() {
    every_second_lie(|party| async move { ActiveRep3::<P256>::new(&party).await });
}
