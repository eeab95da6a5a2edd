//! Elements that are multiplied many times.

use crate::{Group, Table};
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

/// A public element, such as a key or a second generator, that is multiplied by many scalars, secret ones among them. It makes a table after as many
/// multiplications as take the time of making one ([`Group::TABLE_COST`]), once for all threads. A single multiplication thus costs
/// no table, and the total is never more than twice that of the better choice made at the start.
pub struct FixedBase<G: Group> {
    element: G::Element,
    uses: AtomicU32,
    table: OnceLock<Table<G>>,
}

impl<G: Group> FixedBase<G> {
    /// The element, without a table yet.
    #[must_use]
    pub const fn new(element: G::Element) -> Self {
        Self { element, uses: AtomicU32::new(0), table: OnceLock::new() }
    }

    /// The element.
    #[must_use]
    pub const fn element(&self) -> &G::Element {
        &self.element
    }

    /// The product, in constant time: the time depends on the number of earlier products, not on the scalar.
    #[must_use]
    pub fn mul(&self, scalar: &G::Scalar) -> G::Element {
        self.table().map_or_else(|| self.element * *scalar, |table| table(scalar))
    }

    /// g * base_scalar + element * scalar, for public data, as [`Group::vartime_double_mul`]: with a table both products together take less.
    #[must_use]
    pub fn vartime_double_mul(&self, base_scalar: &G::Scalar, scalar: &G::Scalar) -> G::Element {
        match self.table() {
            Some(table) => G::mul_base(base_scalar) + table(scalar),
            None => G::vartime_double_mul(base_scalar, &self.element, scalar),
        }
    }

    /// The table, if there is one or it is time for it.
    fn table(&self) -> Option<&Table<G>> {
        if let Some(table) = self.table.get() {
            return Some(table);
        }
        // The identity has no table.
        if self.uses.fetch_add(1, Ordering::Relaxed) < G::TABLE_COST || G::is_identity(&self.element) {
            return None;
        }
        Some(self.table.get_or_init(|| G::table(&self.element)))
    }
}

/// A copy makes its own table when it has been used enough.
impl<G: Group> Clone for FixedBase<G> {
    fn clone(&self) -> Self {
        Self::new(self.element)
    }
}

impl<G: Group> PartialEq for FixedBase<G> {
    fn eq(&self, other: &Self) -> bool {
        self.element == other.element
    }
}

impl<G: Group> Eq for FixedBase<G> {}

impl<G: Group> fmt::Debug for FixedBase<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.element.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ed448, Ed25519, Ed25519Scalar, P256, P256Scalar, Scalar, Secp256k1, bn254};

    #[test]
    fn before_and_after_the_table_products_are_the_same() {
        let base = FixedBase::<P256>::new(P256::mul_base(&P256Scalar::from_u64(7)));
        for i in 0..3 * u64::from(P256::TABLE_COST) {
            assert_eq!(base.mul(&P256Scalar::from_u64(i)), P256::mul_base(&P256Scalar::from_u64(7 * i)));
            assert_eq!(base.table.get().is_some(), i >= P256::TABLE_COST.into());
        }
        let copy = base.clone();
        assert!(copy.table.get().is_none());
        assert_eq!(copy, base);
        let nothing = FixedBase::<bn254::G1>::new(bn254::G1::identity());
        (0..10).for_each(|i| assert!(bn254::G1::is_identity(&nothing.mul(&Scalar::from_u64(i)))));
    }

    #[test]
    fn sums_with_the_generator_are_the_same_with_a_table_and_without() {
        fn holds<G: Group>() {
            let element = G::mul_base(&G::Scalar::from_u64(7));
            let base = FixedBase::<G>::new(element);
            for i in 0..2 * u64::from(G::TABLE_COST) + 2 {
                let [a, b] = [i, 5 * i + 1].map(|value| G::Scalar::from_u64(value) - G::Scalar::from_u64(3));
                let expected = G::mul_base(&a) + element * b;
                assert!(base.vartime_double_mul(&a, &b) == expected, "{} {i}", G::NAME);
                assert!(G::vartime_double_mul(&a, &element, &b) == expected, "{} {i}", G::NAME);
                assert!(G::vartime_mul(&element, &b) == element * b, "{} {i}", G::NAME);
            }
            assert!(base.table.get().is_some());
        }
        holds::<P256>();
        holds::<Secp256k1>();
        holds::<Ed25519>();
        holds::<Ed448>();
        holds::<bn254::G1>();
    }

    #[test]
    fn threads_share_one_table() {
        let base = FixedBase::<Ed25519>::new(Ed25519::generator());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for i in 0..u64::from(Ed25519::TABLE_COST) {
                        let scalar = Ed25519Scalar::from_u64(i);
                        assert_eq!(base.mul(&scalar), Ed25519::mul_base(&scalar));
                    }
                });
            }
        });
        assert!(base.table.get().is_some());
    }
}
