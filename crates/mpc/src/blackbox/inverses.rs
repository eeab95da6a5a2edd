//! Random values with the generator times their inverses, which are what ECDSA's nonces are, and the product of such values with one factor that is known later.

use theta_groups::{Group, Scalar as _};

use super::{
    BlackBox, Element, Products, Scalar, Shared, Triples, is_zero,
    products::{drawn_to_verify, parts_of},
};
use crate::Stop;

/// Random values `[a]`, with a^-1 G of each in public. See [`BlackBox::inverses`].
#[derive(Debug)]
pub struct Inverses<B: BlackBox> {
    pub(crate) values: Shared<B>,
    pub(crate) elements: Vec<Element<B>>,
    pub(crate) masks: Option<Masks<B>>,
}

/// For each a a random u and u a, which has been verified: with them a product x a takes one opening, of x - u.
#[derive(Debug)]
pub(crate) struct Masks<B: BlackBox> {
    /// Which masks they are, if it is on record how they were dealt.
    pub(crate) record: Option<u64>,
    pub(crate) masks: Shared<B>,
    pub(crate) products: Shared<B>,
}

impl<B: BlackBox> Inverses<B> {
    /// Values without masks: their products are made when the factor is known.
    pub(crate) const fn new(values: Shared<B>, elements: Vec<Element<B>>) -> Self {
        Self { values, elements, masks: None }
    }

    /// The values.
    #[must_use]
    pub const fn values(&self) -> &Shared<B> {
        &self.values
    }

    /// For each value the generator times its inverse.
    #[must_use]
    pub fn elements(&self) -> &[Element<B>] {
        &self.elements
    }

    /// Those for which `keep` is true, by place.
    pub(crate) fn filter(self, keep: impl Fn(usize) -> bool) -> Self {
        let elements =
            self.elements.into_iter().enumerate().filter(|(i, _)| keep(*i)).map(|(_, element)| element).collect();
        let masks = self.masks.map(|Masks { record, masks, products }| {
            let (before, masks, products) = (masks.len(), masks.filter(&keep), products.filter(&keep));
            // Places on record are those of all.
            Masks { record: record.filter(|_| masks.len() == before), masks, products }
        });
        Self { values: self.values.filter(keep), elements, masks }
    }

    /// The values, their elements, and the values times one factor. It consumes the masks: two factors under one mask would show their difference.
    ///
    /// With masks it shows x - u to all for each value, and a x is (x - u) a + u a: nothing but an opening depends on x. Without, it multiplies. All confirm the digest at the
    /// end, as they have done before. `points`: see [`BlackBox::open_masked`].
    ///
    /// # Errors
    /// [`Stop`]; [`Stop::Input`] unless the factor is one value.
    pub async fn times(
        self,
        black_box: &B,
        (factor, points): (&Shared<B>, &[Element<B>]),
        digest: [u8; 32],
    ) -> Result<(Shared<B>, Vec<Element<B>>, Shared<B>), Stop> {
        let Self { values, elements, masks } = self;
        let products = match masks {
            Some(Masks { record, masks, products }) => {
                super::check_factor(factor)?;
                let differences = &factor.repeated(values.len()) - &masks;
                let differences =
                    black_box.open_masked(&differences, record.map(|record| (record, points)), digest).await?;
                &values.times_each(&differences) + &products
            }
            None => {
                let products = black_box.multiply_by(&values, factor).await?;
                black_box.confirm(digest).await?;
                products
            }
        };
        Ok((values, elements, products))
    }
}

/// [`BlackBox::inverses`]. With active security masks come with the values, so that one verification serves both products. Where nothing is verified, products that are
/// public in the end are never shared, and a product with x is as cheap as an opening.
pub(crate) async fn inverses<B: Products>(black_box: &B, count: usize) -> Result<Inverses<B>, Stop> {
    if !B::ACTIVE {
        let (a, b) = black_box.random(2 * count).await?.split(count);
        let c = black_box.open_parts(&parts_of(&a, &b)).await?;
        return inverses_of(black_box, a, b, c).await;
    }
    // What the checks need comes in the same round: random values for the products, a mask and a coin for the elements.
    let for_checks = drawn_to_verify(2 * count) + 2;
    let (masks, drawn, record) = black_box.random_for_masks(count, 2 * count + for_checks).await?;
    let (drawn, more) = drawn.split(2 * count);
    black_box.reserve().put(&more);
    let (a, b) = drawn.split(count);
    let (c, products) = black_box.multiply(&a.then(&a), &b.then(&masks)).await?.split(count);
    let inverses = inverses_from(black_box, (a, b, c)).await?;
    Ok(Inverses { masks: Some(Masks { record, masks, products }), ..inverses })
}

/// Values with the generator times their inverses, from triples: c = a b is opened, and a^-1 G is (b / c) G.
pub(crate) async fn inverses_from<B: BlackBox>(black_box: &B, (a, b, c): Triples<B>) -> Result<Inverses<B>, Stop> {
    // With active security this verifies the triples first; with MASCOT- a false c shows when R is wrong for the signature.
    let c = black_box.open_products(&c).await?;
    inverses_of(black_box, a, b, c).await
}

/// The same, with c known.
async fn inverses_of<B: BlackBox>(
    black_box: &B,
    a: Shared<B>,
    b: Shared<B>,
    mut c: Vec<Scalar<B>>,
) -> Result<Inverses<B>, Stop> {
    // Zeros stay zeros.
    Scalar::<B>::vartime_batch_invert(&mut c);
    let mut elements = black_box.open_points(&b.convert().times_each(&c)).await?;
    // Nobody divides by a zero, whatever liars open in its place.
    let zeros = elements.iter_mut().zip(&c).filter(|(_, inverse)| is_zero::<B>(inverse));
    zeros.for_each(|(element, _)| *element = B::Group::identity());
    Ok(Inverses::new(a, elements))
}
