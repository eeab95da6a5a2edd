//! Whether a point of edwards25519 is in the group of prime order, without multiplying it by the order.
//!
//! The curve's points are a cyclic group of 8 q elements, so those of the prime-order group are those that can be halved
//! three times (Pornin, "Point-halving and subgroup membership in twisted Edwards curves", 2022). On the curve's other
//! form, v^2 = u (u^2 + A u + 1) with u = (1 + y) / (1 - y), which has a single point of order two, (0, 0):
//!
//! - P has halves if and only if u is a square, since u generates the one non-trivial map of E / 2E into the squares.
//! - Let s^2 = u and w = v / s, so that w^2 = u^2 + A u + 1. A half Q of P, of coordinate t, has t + 1/t = z for one of
//!   z = 2 u + 2 w and z = 2 u - 2 w (from the formula for doubling), and of these for the one with z + A = r^2, a square:
//!   the product of both z + A is A^2 - 4, which is none.
//! - Q has halves if t is a square, that is if z + 2 = m^2 is a square: then t = s'^2 with s' = (m + 2 s r / m) / 2. The square
//!   root of t^2 + A t + 1 is w' = s' r.
//! - A half of Q has halves if Q = 4 R: if and only if w' - c s' is a square, c^2 = A + 2. That is the quadratic form of the Tate
//!   pairing with the point (1, c) of order four: its function is (v - c u)^2 / u = (s' (w' - c s'))^2, and must be a fourth power.
//!   It does not matter which signs s, w', r, s' have, since -1 is a square and (w' - c s') (-w' - c s') = -(t - 1)^2 is.
//!
//! So the answer is whether m^2 (m s' (r - c))^2, with m s' = (z + 2) / 2 + s r, is a fourth power: two square roots and
//! one exponentiation in all. Denominators are cleared by multiplying with fourth powers.

use crrl::field::GF25519;

/// A of the curve's Montgomery form.
const A: u32 = 486_662;
/// c: a root of A + 2.
const C: GF25519 =
    GF25519::w64be(0x141b_0b68_0656_3d50, 0x3de0_5885_280b_5910, 0x9ca5_ee38_d7b5_6c9c, 0x165d_b710_6377_bbd8);
/// Roots of 2 (A^2 - 4) and -2 (A^2 - 4).
const ROOTS: [GF25519; 2] = [
    GF25519::w64be(0x1b1e_c747_62bb_dddf, 0xa5f1_f805_ef30_4cd8, 0x059d_c073_7df8_5141, 0xa973_9e67_5505_b5bb),
    GF25519::w64be(0x2820_c430_ec9e_05fd, 0xd659_bacc_5129_0047, 0x3610_7d35_f2ab_43a9, 0xa7fa_8688_126e_ee89),
];

/// Whether a point of the curve has prime order or is the neutral element, from y and from x times either root of -1, both
/// canonical little-endian integers. The time taken depends on the point.
pub(crate) fn vartime_is_in_subgroup(y: &[u8; 32], ix: &[u8; 32]) -> bool {
    let (Some(y), Some(ix)) = (GF25519::decode(y), GF25519::decode(ix)) else { return false };
    if ix.iszero() != 0 {
        // The neutral element, or the point (0, -1) of order two.
        return y.equals(GF25519::ONE) != 0;
    }
    let (n, d) = (GF25519::ONE + y, GF25519::ONE - y);
    // u = n / d, s = alpha / d, w = c alpha / (ix d).
    let (alpha, is_square) = (n * d).sqrt();
    if is_square == 0 {
        return false;
    }
    // z = 2 m / e.
    let e = ix * d;
    let (nx, ca) = (n * ix, C * alpha);
    let mut m = nx + ca;
    let fe = (m.mul2() + e.mul_small(A)) * e;
    // r = numerator / denominator.
    let (root, is_square) = fe.sqrt_ext();
    let (numerator, denominator) = if is_square != 0 {
        (root, e)
    } else {
        // The other z; the library gives a root of 2 f e or of -2 f e.
        m = nx - ca;
        let [plus, minus] = ROOTS;
        let constant = if root.square().equals(fe.mul2()) != 0 { plus } else { minus };
        (constant * e, root)
    };
    let product = ((m + e) * d * denominator + alpha * numerator * e) * (numerator - C * denominator) * d;
    is_fourth_power((m + e).mul2() * e * product.square())
}

/// Whether x^((p - 1) / 4) is one; (p - 1) / 4 = 8 (2^250 - 1) + 3.
fn is_fourth_power(x: GF25519) -> bool {
    let x2 = x.square() * x;
    let x4 = x2.xsquare(2) * x2;
    let x5 = x4.square() * x;
    let x10 = x5.xsquare(5) * x5;
    let x20 = x10.xsquare(10) * x10;
    let x40 = x20.xsquare(20) * x20;
    let x50 = x40.xsquare(10) * x10;
    let x100 = x50.xsquare(50) * x50;
    let x200 = x100.xsquare(100) * x100;
    let x250 = x200.xsquare(50) * x50;
    (x250.xsquare(3) * x2).equals(GF25519::ONE) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_the_roots() {
        let a = GF25519::from_u32(A);
        assert_ne!(C.square().equals(a + GF25519::from_u32(2)), 0);
        let product = (a.square() - GF25519::from_u32(4)).mul2();
        for (root, square) in ROOTS.into_iter().zip([product, -product]) {
            assert_ne!(root.square().equals(square), 0);
        }
        assert_eq!((a.square() - GF25519::from_u32(4)).legendre(), -1);
    }

    #[test]
    fn fourth_powers_are_told() {
        for i in 1..50 {
            let x = GF25519::from_u32(i);
            assert!(is_fourth_power(x.xsquare(2)));
            assert!(!is_fourth_power(x.xsquare(2).mul2()), "two is no square");
            assert!(!is_fourth_power(x.xsquare(2).mul4()), "nor four a fourth power");
        }
        assert!(!is_fourth_power(GF25519::ZERO));
    }
}
