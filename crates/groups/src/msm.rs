//! Multi-scalar multiplication for curves whose crate has none: Straus's interleaved windows for few points, Pippenger's
//! buckets for many (compared by Bernstein, Doumen, Lange and Oosterwijk, "Faster batch forgery identification", 2012,
//! section 4). All of it is variable-time, for public data only.

/// A point as these algorithms need it. Every operation may take time that depends on its operands.
pub(crate) trait VartimePoint: Copy + 'static {
    /// The form in which points are added most cheaply: affine where mixed additions pay, else the point itself.
    type Affine: Copy + 'static;

    /// The neutral element.
    fn identity() -> Self;
    /// Twice the point.
    fn double(&self) -> Self;
    /// The sum of any two points.
    fn add(&self, other: &Self) -> Self;
    /// The sum with an affine point.
    fn add_affine(&self, other: &Self::Affine) -> Self;
    /// The sum with many affine points.
    fn add_all(&self, others: &[Self::Affine]) -> Self {
        others.iter().fold(*self, |sum, other| sum.add_affine(other))
    }
    /// The inverse of a point.
    fn negate_affine(point: &Self::Affine) -> Self::Affine;
    /// Converts many points, sharing the field inversion.
    fn batch_to_affine(points: &[Self]) -> Vec<Self::Affine>;
    /// left\[i\] + right\[i\].
    fn batch_add(left: &[Self::Affine], right: &[Self::Affine]) -> Vec<Self::Affine> {
        let sums = left.iter().zip(right).map(|(left, right)| Self::identity().add_affine(left).add_affine(right));
        Self::batch_to_affine(&sums.collect::<Vec<_>>())
    }
    /// The number of additions from which [`VartimePoint::batch_add`] beats [`VartimePoint::add_affine`].
    const BATCH_FROM: usize = usize::MAX;
    /// The costs by which the method is chosen; the default counts the multiplications in the formulas.
    const COSTS: Costs = Costs { in_batch: 10, double: 7, add: 14, entry: 16 };
}

/// Costs in tenths of a mixed addition.
pub(crate) struct Costs {
    /// An addition among as many others as there are, in batches if that pays.
    pub(crate) in_batch: usize,
    /// A doubling.
    pub(crate) double: usize,
    /// An addition of two points, neither of them affine.
    pub(crate) add: usize,
    /// An entry of a table: an addition with an affine result.
    pub(crate) entry: usize,
}

/// Sum of points\[i\] * scalars\[i\], the scalars little-endian integers of up to 128 bytes each, of any value: short
/// ones cost less, and a one costs an addition. Extra entries of the longer slice are ignored.
pub(crate) fn vartime_msm<P: VartimePoint>(scalars: &[impl AsRef<[u8]>], points: &[P]) -> P {
    // Points with scalar zero are dropped before the conversion.
    let terms = || scalars.iter().map(AsRef::as_ref).zip(points).filter(|(scalar, _)| bit_length(scalar) > 0);
    let points: Vec<P> = terms().map(|(_, point)| *point).collect();
    let scalars: Vec<&[u8]> = terms().map(|(scalar, _)| scalar).collect();
    vartime_msm_affine::<P>(&scalars, &P::batch_to_affine(&points))
}

/// The same for integers of at most 128 bits.
pub(crate) fn vartime_msm_short<P: VartimePoint>(scalars: &[u128], points: &[P]) -> P {
    let bytes: Vec<[u8; 16]> = scalars.iter().map(|scalar| scalar.to_le_bytes()).collect();
    vartime_msm(&bytes, points)
}

/// The same as [`vartime_msm`] for points that are affine already.
pub(crate) fn vartime_msm_affine<P: VartimePoint>(scalars: &[impl AsRef<[u8]>], points: &[P::Affine]) -> P {
    let scalars: Vec<&[u8]> = scalars.iter().map(AsRef::as_ref).take(points.len()).collect();
    let bits: Vec<usize> = scalars.iter().map(|scalar| bit_length(scalar)).collect();
    let (buckets_cost, window) =
        (2..=16).map(|window| (buckets_cost::<P>(&bits, window), window)).min().unwrap_or((0, 2));
    if buckets_cost < windows_cost::<P>(&bits) {
        buckets(&scalars, points, &bits, window)
    } else {
        windows(&scalars, points, &bits)
    }
}

/// Bits of a little-endian integer up to its highest one.
fn bit_length(scalar: &[u8]) -> usize {
    let Some(last) = scalar.iter().rposition(|byte| *byte != 0) else { return 0 };
    let top = scalar.get(last).map_or(0, |byte| 8 - byte.leading_zeros());
    8 * last + usize::try_from(top).unwrap_or(0)
}

/// `count` (at most 16) bits of a little-endian integer from bit `from` on.
fn bits_at(scalar: &[u8], from: usize, count: usize) -> u32 {
    let rest = scalar.get(from / 8..).unwrap_or_default();
    let word = match rest {
        [a, b, c, d, ..] => u32::from_le_bytes([*a, *b, *c, *d]),
        short => short.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte)),
    };
    word >> (from % 8) & ((1 << count) - 1)
}

/// The cost of a scalar of `bits` bits in Straus's method with digits of `width` bits.
const fn digits_cost<P: VartimePoint>(bits: usize, width: usize) -> usize {
    let table = if width > 2 { P::COSTS.entry << (width - 2) } else { 0 };
    table + P::COSTS.in_batch * bits.div_ceil(width + 1)
}

/// The best width of signed digits for a scalar; 2 means that no table is made.
fn best_width<P: VartimePoint>(bits: usize) -> usize {
    (2..=7).min_by_key(|width| digits_cost::<P>(bits, *width)).unwrap_or(2)
}

fn windows_cost<P: VartimePoint>(bits: &[usize]) -> usize {
    let additions: usize = bits.iter().map(|bits| digits_cost::<P>(*bits, best_width::<P>(*bits))).sum();
    additions + P::COSTS.double * bits.iter().max().unwrap_or(&0)
}

fn buckets_cost<P: VartimePoint>(bits: &[usize], window: usize) -> usize {
    let additions: usize = bits.iter().map(|bits| bits.div_ceil(window)).sum();
    let windows = bits.iter().max().unwrap_or(&0) / window + 1;
    // The last sums of the buckets are not added in batches.
    let bucket = 10 - P::COSTS.in_batch + P::COSTS.add;
    P::COSTS.in_batch * additions + windows * ((bucket << (window - 1)) + P::COSTS.double * window)
}

/// Groups of points; the points of each group are to be added up.
struct Groups<P: VartimePoint> {
    /// How many points each group has.
    sizes: Vec<usize>,
    /// One group after the other.
    points: Vec<P::Affine>,
}

impl<P: VartimePoint> Groups<P> {
    const fn new() -> Self {
        Self { sizes: Vec::new(), points: Vec::new() }
    }

    /// Adds points of the same group in pairs, all groups at once, while that pays.
    fn shrink(&mut self) {
        while self.sizes.iter().map(|size| size / 2).sum::<usize>() >= P::BATCH_FROM {
            let (mut left, mut right) = (Vec::new(), Vec::new());
            for group in self.iter() {
                for [first, second] in group.as_chunks().0 {
                    left.push(*first);
                    right.push(*second);
                }
            }
            let mut sums = P::batch_add(&left, &right).into_iter();
            let mut points = Vec::with_capacity(self.points.len());
            for group in self.iter() {
                let (pairs, single) = group.as_chunks::<2>();
                points.extend(sums.by_ref().take(pairs.len()));
                points.extend(single);
            }
            self.points = points;
            self.sizes.iter_mut().for_each(|size| *size = size.div_ceil(2));
        }
    }

    /// The points of each group.
    fn iter(&self) -> impl Iterator<Item = &[P::Affine]> {
        self.sizes.iter().scan(self.points.as_slice(), |rest, size| {
            let (group, after) = rest.split_at_checked(*size)?;
            *rest = after;
            Some(group)
        })
    }
}

/// The non-adjacent form of `width` bits, lowest digit first: digits are zero or odd, below 2^(width-1) in absolute
/// value, and of `width` successive ones at most one is not zero.
pub(crate) fn non_adjacent_form(scalar: &[u8], bits: usize, width: usize) -> Vec<i8> {
    let mut digits = vec![0; bits + 1];
    let (mut carry, mut position) = (0, 0);
    while position <= bits {
        let value = bits_at(scalar, position, width) + carry;
        if value & 1 == 0 {
            position += 1;
            continue;
        }
        // An odd value is at most 2^width - 1, so that the signed digit fits for widths up to 8.
        carry = value >> (width - 1);
        let digit = i64::from(value) - i64::from(carry << width);
        if let Some(place) = digits.get_mut(position) {
            *place = i8::try_from(digit).unwrap_or(0);
        }
        position += width;
    }
    digits
}

/// Odd multiples P, 3P, 5P ... of every point, as many as its width needs: `tables[j][i]` is (2j + 1) P_i.
struct OddMultiples<P: VartimePoint>(Vec<Vec<Option<P::Affine>>>);

impl<P: VartimePoint> OddMultiples<P> {
    fn new(points: &[P::Affine], widths: &[usize]) -> Self {
        let mut rows = vec![points.iter().copied().map(Some).collect::<Vec<_>>()];
        let wide: Vec<P::Affine> = points.iter().zip(widths).filter(|(_, w)| **w > 2).map(|(p, _)| *p).collect();
        let doubled = P::batch_add(&wide, &wide);
        let mut twice = doubled.iter();
        let twice: Vec<_> = widths.iter().map(|width| if *width > 2 { twice.next() } else { None }).collect();
        let entries = widths.iter().max().map_or(1, |width| 1 << (width - 2));
        for entry in 1..entries {
            let needs = |width: usize| entry < 1 << (width - 2);
            let last = rows.last().map_or(&[][..], Vec::as_slice);
            let pairs = last.iter().zip(&twice).zip(widths).filter(|(_, width)| needs(**width));
            let (left, right): (Vec<_>, Vec<_>) =
                pairs.filter_map(|((last, twice), _)| Some(((*last)?, *(*twice)?))).unzip();
            let mut sums = P::batch_add(&left, &right).into_iter();
            rows.push(widths.iter().map(|width| if needs(*width) { sums.next() } else { None }).collect());
        }
        Self(rows)
    }

    /// The multiple of point `i` by an odd digit.
    fn get(&self, i: usize, digit: i8) -> Option<P::Affine> {
        let entry = (*self.0.get(usize::from(digit.unsigned_abs() / 2))?.get(i)?)?;
        Some(if digit < 0 { P::negate_affine(&entry) } else { entry })
    }
}

/// Straus' method: all products share the doublings.
fn windows<P: VartimePoint>(scalars: &[&[u8]], points: &[P::Affine], bits: &[usize]) -> P {
    let widths: Vec<usize> = bits.iter().map(|bits| best_width::<P>(*bits)).collect();
    let tables = OddMultiples::<P>::new(points, &widths);
    let digits: Vec<Vec<i8>> = scalars
        .iter()
        .zip(bits.iter().zip(&widths))
        .map(|(scalar, (bits, width))| non_adjacent_form(scalar, *bits, *width))
        .collect();
    let positions: Vec<usize> = (0..digits.iter().map(Vec::len).max().unwrap_or(0)).rev().collect();
    // At most one digit in four is not zero.
    positions.chunks(4 * at_once::<P>(points.len())).fold(P::identity(), |sum, positions| {
        let mut groups = Groups::<P>::new();
        for position in positions {
            let before = groups.points.len();
            for (i, digits) in digits.iter().enumerate() {
                match digits.get(*position) {
                    None | Some(0) => {}
                    Some(digit) => groups.points.extend(tables.get(i, *digit)),
                }
            }
            groups.sizes.push(groups.points.len() - before);
        }
        groups.shrink();
        groups.iter().fold(sum, |sum, group| sum.double().add_all(group))
    })
}

/// Pippenger's method: in each window the points with equal digits meet in a bucket first, so that only buckets are
/// multiplied, by running sums. Digits are signed, which halves the buckets.
fn buckets<P: VartimePoint>(scalars: &[&[u8]], points: &[P::Affine], bits: &[usize], window: usize) -> P {
    let windows = bits.iter().max().unwrap_or(&0) / window + 1;
    let digits: Vec<Vec<i32>> = scalars.iter().map(|scalar| signed_digits(scalar, windows, window)).collect();
    let buckets = 1 << (window - 1);
    let positions: Vec<usize> = (0..windows).rev().collect();
    positions.chunks(at_once::<P>(points.len())).fold(P::identity(), |sum, positions| {
        let mut groups = Groups::<P>::new();
        for position in positions {
            let digits = digits.iter().map(|digits| digits.get(*position).copied().unwrap_or(0));
            sort(buckets, digits.zip(points), &mut groups);
        }
        groups.shrink();
        let mut rest = groups.iter();
        positions.iter().fold(sum, |sum, _| {
            let shifted = (0..window).fold(sum, |sum, _| sum.double());
            shifted.add(&weighted_sum(rest.by_ref().take(buckets)))
        })
    })
}

/// How many windows to prepare together for `points` points: many additions share an inversion, but all the points must fit
/// the processor's cache. Without batches, fewer are better.
fn at_once<P: VartimePoint>(points: usize) -> usize {
    let places = if P::BATCH_FROM == usize::MAX { 128 } else { 8192 };
    (places / points.max(1)).max(1)
}

/// Appends a group for each absolute value of a digit, from `buckets` down to one, of the points with that digit.
fn sort<'a, P: VartimePoint>(
    buckets: usize,
    terms: impl Iterator<Item = (i32, &'a P::Affine)> + Clone,
    groups: &mut Groups<P>,
) {
    // At most 2^15; a zero has no bucket.
    let bucket = |digit: i32| buckets.checked_sub(usize::try_from(digit.unsigned_abs()).unwrap_or(0));
    let terms = terms.filter(|(digit, _)| *digit != 0);
    let mut sizes = vec![0; buckets];
    for (digit, _) in terms.clone() {
        if let Some(size) = bucket(digit).and_then(|bucket| sizes.get_mut(bucket)) {
            *size += 1;
        }
    }
    let mut start = groups.points.len();
    let mut places = Vec::with_capacity(buckets);
    for size in &sizes {
        places.push(start);
        start += size;
    }
    // Room for all; each finds its place below.
    groups.points.extend(terms.clone().map(|(_, point)| *point));
    for (digit, point) in terms {
        let Some(place) = bucket(digit).and_then(|bucket| places.get_mut(bucket)) else { continue };
        if let Some(slot) = groups.points.get_mut(*place) {
            *slot = if digit < 0 { P::negate_affine(point) } else { *point };
        }
        *place += 1;
    }
    groups.sizes.extend(sizes);
}

/// n times the first of n groups, n - 1 times the second, and so on.
fn weighted_sum<'a, P: VartimePoint>(groups: impl Iterator<Item = &'a [P::Affine]>) -> P {
    let (mut running, mut total) = (None::<P>, P::identity());
    for group in groups {
        if !group.is_empty() {
            running = Some(running.unwrap_or_else(P::identity).add_all(group));
        }
        total = running.map_or(total, |running| total.add(&running));
    }
    total
}

/// Digits of `window` bits from -2^(window-1) to 2^(window-1), lowest first.
fn signed_digits(scalar: &[u8], windows: usize, window: usize) -> Vec<i32> {
    let mut carry = 0;
    (0..windows)
        .map(|i| {
            let value = bits_at(scalar, i * window, window) + carry;
            carry = u32::from(value > 1 << (window - 1));
            // At most 2^16: both conversions are exact.
            i32::try_from(value).unwrap_or(0) - i32::try_from(carry << window).unwrap_or(0)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The integers under addition: every sum can be checked.
    impl VartimePoint for i128 {
        type Affine = Self;
        fn identity() -> Self {
            0
        }
        fn double(&self) -> Self {
            self.wrapping_mul(2)
        }
        fn add(&self, other: &Self) -> Self {
            self.wrapping_add(*other)
        }
        fn add_affine(&self, other: &Self) -> Self {
            self.wrapping_add(*other)
        }
        fn negate_affine(point: &Self) -> Self {
            point.wrapping_neg()
        }
        fn batch_to_affine(points: &[Self]) -> Vec<Self> {
            points.to_vec()
        }
    }

    /// Scalars of every length and shape, the same each time.
    fn scalars(n: usize, max_len: usize) -> Vec<Vec<u8>> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        };
        (0..n)
            .map(|i| match i % 7 {
                0 => vec![0xff; max_len],
                1 => vec![1],
                2 => vec![0; i % 5],
                3 => (0..i % (max_len + 1)).map(|_| next()).collect(),
                _ => (0..max_len).map(|_| next()).collect(),
            })
            .collect()
    }

    fn value(scalar: &[u8]) -> i128 {
        scalar.iter().rev().fold(0, |value: i128, byte| value.wrapping_mul(256).wrapping_add(i128::from(*byte)))
    }

    fn points(n: usize) -> Vec<i128> {
        (1..).map(|i: i128| i.wrapping_mul(0x1234_5678_9abc_def0_1235) ^ i << 100).take(n).collect()
    }

    #[test]
    fn both_methods_give_the_sum_at_any_size() {
        for max_len in [1, 2, 16, 32, 57] {
            for n in [0, 1, 2, 3, 10, 50, 300] {
                let (scalars, points) = (scalars(n, max_len), points(n));
                let expected = scalars
                    .iter()
                    .zip(&points)
                    .fold(0, |sum: i128, (scalar, point)| sum.wrapping_add(value(scalar).wrapping_mul(*point)));
                assert_eq!(vartime_msm(&scalars, &points), expected, "{n} of {max_len} bytes");
                let views: Vec<&[u8]> = scalars.iter().map(Vec::as_slice).collect();
                let bits: Vec<usize> = views.iter().map(|scalar| bit_length(scalar)).collect();
                assert_eq!(windows::<i128>(&views, &points, &bits), expected);
                for window in [2, 3, 5, 8, 11, 16] {
                    assert_eq!(buckets::<i128>(&views, &points, &bits, window), expected, "window {window}");
                }
            }
        }
    }

    #[test]
    fn what_has_no_partner_is_ignored() {
        assert_eq!(vartime_msm_short(&[3, 4, 5], &[10_i128]), 30);
        assert_eq!(vartime_msm_short(&[3], &[10_i128, 20]), 30);
        assert_eq!(vartime_msm_short(&[u128::MAX], &[-1_i128]), 1);
    }

    #[test]
    fn every_form_stands_for_its_scalar() {
        for scalar in scalars(100, 15) {
            let bits = bit_length(&scalar);
            for width in 2..=8 {
                let form = non_adjacent_form(&scalar, bits, width);
                let sum = form.iter().rev().fold(0, |sum: i128, digit| 2 * sum + i128::from(*digit));
                assert_eq!(sum, value(&scalar));
                assert!(form.iter().all(|digit| *digit == 0 || digit % 2 != 0));
                assert!(form.windows(width).all(|some| some.iter().filter(|digit| **digit != 0).count() <= 1));
            }
        }
    }
}
