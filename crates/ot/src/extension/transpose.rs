//! From a row for each bit to a block for each transfer.

use crate::words;

/// A square of 128 by 128 bits: the two words of each row.
type Square = [[u64; 2]; 128];

/// The columns of 128 rows of `blocks` blocks each. Bit r of column j is bit j of row r.
pub(super) fn columns(rows: &[u128], blocks: usize) -> Vec<u128> {
    let mut columns = Vec::with_capacity(128 * blocks);
    let mut square: Square = [[0; 2]; 128];
    for index in 0..blocks {
        for (to, row) in square.iter_mut().zip(rows.chunks_exact(blocks)) {
            *to = words::split(row.get(index).copied().unwrap_or_default());
        }
        transpose(&mut square);
        columns.extend(square.iter().map(|[low, high]| words::join(*low, *high)));
    }
    columns
}

/// By quarters (Eklundh 1972): the off-diagonal squares of 64, then of 32, and so on, change places.
fn transpose(square: &mut Square) {
    let (upper, lower) = square.split_at_mut(64);
    for ([_, upper], [lower, _]) in upper.iter_mut().zip(lower) {
        core::mem::swap(upper, lower);
    }
    exchange::<32>(square, 0x0000_0000_ffff_ffff);
    exchange::<16>(square, 0x0000_ffff_0000_ffff);
    exchange::<8>(square, 0x00ff_00ff_00ff_00ff);
    exchange::<4>(square, 0x0f0f_0f0f_0f0f_0f0f);
    exchange::<2>(square, 0x3333_3333_3333_3333);
    exchange::<1>(square, 0x5555_5555_5555_5555);
}

fn exchange<const WIDTH: usize>(square: &mut Square, mask: u64) {
    for rows in square.chunks_exact_mut(2 * WIDTH) {
        let (upper, lower) = rows.split_at_mut(WIDTH);
        for (upper, lower) in upper.iter_mut().zip(lower) {
            for (upper, lower) in upper.iter_mut().zip(lower) {
                let difference = (*upper >> WIDTH ^ *lower) & mask;
                *lower ^= difference;
                *upper ^= difference << WIDTH;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_bits_of_rows() {
        let blocks = 3;
        let mut state = 1_u128;
        let mut next = || {
            state = state.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(7);
            state ^ state >> 64
        };
        let rows: Vec<u128> = (0..128 * blocks).map(|_| next()).collect();
        let columns = columns(&rows, blocks);
        assert_eq!(columns.len(), 128 * blocks);
        for (j, column) in columns.iter().enumerate() {
            for r in 0..128 {
                assert_eq!(column >> r & 1, rows[r * blocks + j / 128] >> (j % 128) & 1, "row {r}, column {j}");
            }
        }
    }
}
