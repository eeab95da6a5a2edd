//! Products of powers of public numbers (Straus, American Mathematical Monthly 1964), with sliding windows.

use super::ffi::{Bn, Montgomery, Scratch};
use super::{Integer, Modulus, Residue};

/// One multiplication: by the odd power `entry` of factor `factor`, once all bits above `position` are done.
struct Step {
    position: u32,
    factor: usize,
    entry: usize,
}

/// See [`Modulus::vartime_product`].
pub(super) fn vartime_product(modulus: &Modulus, context: &Montgomery, factors: &[(&Residue, &Integer)]) -> Residue {
    let mut scratch = Scratch::new();
    let mut steps = Vec::new();
    let mut tables = Vec::with_capacity(factors.len());
    for (factor, (base, exponent)) in factors.iter().enumerate() {
        let width = window_width(exponent.bits());
        let largest = schedule(exponent, width, factor, &mut steps);
        tables.push(odd_powers(context, &modulus.own(base).0, largest, &mut scratch));
    }
    steps.sort_unstable_by_key(|step| core::cmp::Reverse(step.position));

    let mut product: Option<Bn> = None;
    let mut position = steps.first().map_or(0, |step| step.position);
    for step in &steps {
        let Some(power) = tables.get(step.factor).and_then(|table| table.get(step.entry)) else { continue };
        product = Some(match product.take() {
            None => power.clone(),
            Some(mut product) => {
                for _ in step.position..position {
                    context.square_assign(&mut product, &mut scratch);
                }
                context.mul_assign(&mut product, power, &mut scratch);
                product
            }
        });
        position = step.position;
    }
    let Some(mut product) = product else {
        return modulus.reduce(&Integer::from_u64(1));
    };
    for _ in 0..position {
        context.square_assign(&mut product, &mut scratch);
    }
    Residue(Integer(context.leave(&product, &mut scratch)))
}

/// The window width for which table and multiplications together cost least.
const fn window_width(bits: u32) -> u32 {
    match bits {
        0..=6 => 1,
        7..=24 => 2,
        25..=80 => 3,
        81..=240 => 4,
        241..=672 => 5,
        673..=1792 => 6,
        _ => 7,
    }
}

/// Cuts an exponent into odd digits of at most `width` bits; returns the position of the largest one in the table.
fn schedule(exponent: &Integer, width: u32, factor: usize, steps: &mut Vec<Step>) -> usize {
    let mut largest = 0;
    let mut high = exponent.bits();
    while high > 0 {
        if !exponent.bit(high - 1) {
            high -= 1;
            continue;
        }
        let mut low = high.saturating_sub(width);
        while !exponent.bit(low) {
            low += 1;
        }
        let digit = (low..high).rev().fold(0_usize, |digit, position| 2 * digit + usize::from(exponent.bit(position)));
        let entry = digit / 2;
        largest = largest.max(entry);
        steps.push(Step { position: low, factor, entry });
        high = low;
    }
    largest
}

/// base, base^3, base^5, ..., base^(2 largest + 1), in Montgomery form.
fn odd_powers(context: &Montgomery, base: &Bn, largest: usize, scratch: &mut Scratch) -> Vec<Bn> {
    let mut power = context.enter(base, scratch);
    let mut table = Vec::with_capacity(largest + 1);
    if largest > 0 {
        let square = context.mul(&power, &power, scratch);
        for _ in 0..largest {
            let next = context.mul(&power, &square, scratch);
            table.push(core::mem::replace(&mut power, next));
        }
    }
    table.push(power);
    table
}
