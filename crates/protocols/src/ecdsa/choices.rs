//! The ways to take some of a list.

/// The ways to take some of a list, those with the foremost first.
pub(super) struct Choices<'a, T> {
    from: &'a [T],
    places: Option<Vec<usize>>,
}

impl<'a, T> Choices<'a, T> {
    /// All choices of `count` of these; none if there are fewer.
    pub(super) fn of(from: &'a [T], count: usize) -> Self {
        Self { from, places: (count <= from.len()).then(|| (0..count).collect()) }
    }
}

impl<T: Copy> Iterator for Choices<'_, T> {
    type Item = Vec<T>;

    fn next(&mut self) -> Option<Vec<T>> {
        let places = self.places.take()?;
        let chosen = places.iter().filter_map(|place| self.from.get(*place).copied()).collect();
        // The last place that can move on does, and those behind it follow it.
        let spare = self.from.len() - places.len();
        let moves = places.iter().enumerate().rposition(|(i, place)| *place < i + spare);
        self.places = moves.map(|at| {
            let first = places.get(at).map_or(0, |place| place + 1);
            let kept = places.iter().copied().take(at);
            kept.chain((0..places.len() - at).map(|i| first + i)).collect()
        });
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_choices_come_once_with_the_foremost_first() {
        let numbers = |count| Choices::of(&[1, 2, 3, 4], count).collect::<Vec<_>>();
        assert_eq!(numbers(2), [[1, 2], [1, 3], [1, 4], [2, 3], [2, 4], [3, 4]]);
        assert_eq!(numbers(4), [[1, 2, 3, 4]]);
        assert_eq!(numbers(1), [[1], [2], [3], [4]]);
        assert!(numbers(5).is_empty());
    }
}
