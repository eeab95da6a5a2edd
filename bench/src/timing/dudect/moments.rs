//! Means and variances of samples, and the test whether two samples have one mean.

/// The variance that rounding to a whole unit adds. Where all times of a class are equal, the clock's ticks are what is uncertain.
const ROUNDING: f64 = 1.0 / 12.0;

/// Number, mean and variance of a sample, online (Welford 1962).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    count: f64,
    mean: f64,
    /// The sum of squared distances from the mean.
    squares: f64,
}

impl Moments {
    /// Adds a value.
    pub(super) fn push(&mut self, value: f64) {
        self.count += 1.0;
        let distance = value - self.mean;
        self.mean += distance / self.count;
        self.squares += distance * (value - self.mean);
    }

    /// How many values there are.
    pub(super) const fn count(&self) -> f64 {
        self.count
    }

    /// Their mean; 0 of none.
    pub(super) const fn mean(&self) -> f64 {
        self.mean
    }

    /// The variance of the mean, of two values or more.
    fn variance_of_mean(&self) -> f64 {
        (self.squares / (self.count - 1.0) + ROUNDING) / self.count
    }
}

/// Welch's t of two samples (Welch 1947); 0 if one has less than two values.
pub(super) fn welch(one: &Moments, other: &Moments) -> f64 {
    if one.count < 2.0 || other.count < 2.0 {
        return 0.0;
    }
    (one.mean - other.mean) / (one.variance_of_mean() + other.variance_of_mean()).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Moments {
        let mut moments = Moments::default();
        values.iter().for_each(|value| moments.push(*value));
        moments
    }

    #[test]
    fn moments_are_those_of_the_textbook() {
        let moments = of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert!((moments.mean() - 5.0).abs() < 1e-12);
        assert!((moments.squares - 32.0).abs() < 1e-12);
        assert!((moments.count() - 8.0).abs() < 1e-12);
        // Large values do not drown small distances.
        let far = of(&[1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0]);
        assert!((far.squares - 90.0).abs() < 1e-6);
    }

    #[test]
    fn t_is_that_of_the_formula() {
        let (one, other) = (of(&[10.0, 12.0, 14.0]), of(&[20.0, 26.0]));
        let expected = (12.0 - 23.0) / ((4.0 + ROUNDING) / 3.0 + (18.0 + ROUNDING) / 2.0_f64).sqrt();
        assert!((welch(&one, &other) - expected).abs() < 1e-12);
        assert!((welch(&other, &one) + expected).abs() < 1e-12);
    }

    #[test]
    fn too_few_and_equal_values_give_numbers() {
        assert!(welch(&of(&[1.0]), &of(&[5.0, 6.0])).abs() < 1e-12);
        assert!(welch(&of(&[7.0; 9]), &of(&[7.0; 5])).abs() < 1e-12);
        let constant = welch(&of(&[7.0; 1000]), &of(&[8.0; 1000]));
        assert!(constant.is_finite() && constant < -10.0);
    }
}
