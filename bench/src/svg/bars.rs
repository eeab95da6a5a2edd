//! Stacked bars, and boxes of distributions.

use super::{
    AXIS, Axis, CATEGORY_HEIGHT, COLOURS, Drawing, LETTER, RIGHT, Series, TOP, WIDTH, exact, legend_places, length,
    number,
};

/// Height of a bar.
const BAR: f64 = 14.0;

/// Percentiles of one distribution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) p5: f64,
    pub(crate) p25: f64,
    pub(crate) p50: f64,
    pub(crate) p75: f64,
    pub(crate) p95: f64,
}

/// The frame of a plot with one line a category and a linear axis from zero.
struct Frame {
    drawing: Drawing,
    axis: Axis,
    left: f64,
    bottom: f64,
}

impl Frame {
    fn new(title: &str, label: &str, categories: &[String], highest: f64, legend: f64) -> Self {
        let rows = exact(categories.len());
        let bottom = TOP + 6.0 + rows * CATEGORY_HEIGHT;
        let mut drawing = Drawing::new(title, bottom + AXIS + legend);
        let left = 20.0 + LETTER * categories.iter().map(|name| length(name)).fold(0.0, f64::max);
        let axis = Axis::over([highest].into_iter(), false, left, WIDTH - RIGHT);
        drawing.horizontal(&axis, label, bottom);
        for (number, name) in (0_u32..).zip(categories) {
            drawing.text("e", left - 8.0, middle(number) + 4.0, name);
        }
        drawing.line("a", (left, TOP), (left, bottom));
        Self { drawing, axis, left, bottom }
    }
}

fn middle(category: u32) -> f64 {
    TOP + 6.0 + (f64::from(category) + 0.5) * CATEGORY_HEIGHT
}

impl Drawing {
    /// A filled rectangle in the colour of a series; beyond the colours that there are, in a lighter one.
    fn bar(&mut self, series: usize, (x, y): (f64, f64), (width, height): (f64, f64), hint: &str) {
        let (colour, light) = (series % COLOURS, if series < COLOURS { "" } else { " h" });
        let hint = super::escape(hint);
        let (width, height) = (width.max(0.0), height.max(0.0));
        self.raw(&format!(
            "<rect class=\"k{colour}{light}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>{hint}</title></rect>\n"
        ));
    }
}

/// Draws one bar a category, made of one piece a series. In a point of a series, x is the number of the category, y the length of its piece.
pub(crate) fn stacked(title: &str, label: &str, categories: &[String], series: &[Series]) -> String {
    let (places, legend) = legend_places(series);
    let sum = |category: u32| -> f64 { pieces(series, category).map(|(_, value)| value).sum() };
    let count = u32::try_from(categories.len()).unwrap_or(u32::MAX);
    let highest = (0..count).map(sum).fold(0.0, f64::max);
    let mut frame = Frame::new(title, label, categories, highest, legend);
    for category in 0..count {
        let mut from = 0.0;
        for (index, value) in pieces(series, category) {
            let (start, end) = (frame.axis.place(from), frame.axis.place(from + value));
            let name = series.get(index).map(|series| series.name.as_str()).unwrap_or_default();
            let hint = format!("{name}: {}", number(value));
            frame.drawing.bar(index, (start, middle(category) - BAR / 2.0), (end - start, BAR), &hint);
            from += value;
        }
        let end = frame.axis.place(from);
        // The whole is written behind the bar, where there is room for it.
        if from > 0.0 && end + 60.0 < WIDTH {
            frame.drawing.text("", end + 6.0, middle(category) + 4.0, &number(round(from)));
        }
    }
    for (index, (series, (x, y))) in series.iter().zip(&places).enumerate() {
        let top = frame.bottom + AXIS;
        frame.drawing.bar(index, (x + 1.0, top + y - 9.0), (10.0, 10.0), &series.name);
        frame.drawing.text("", x + 16.0, top + y, &series.name);
    }
    frame.drawing.finish()
}

/// Three digits, for a number that is read and not compared.
fn round(value: f64) -> f64 {
    let unit = 10_f64.powf(2.0 - value.abs().max(1e-9).log10().floor());
    (value * unit).round() / unit
}

fn pieces(series: &[Series], category: u32) -> impl Iterator<Item = (usize, f64)> {
    let wanted = f64::from(category);
    let of = move |(index, series): (usize, &Series)| {
        let value = series.points.iter().find(|(x, _)| *x == wanted).map(|(_, value)| *value)?;
        Some((index, value.max(0.0)))
    };
    series.iter().enumerate().filter_map(of)
}

/// Draws one box a category: from p25 to p75 with a mark at p50, and lines to p5 and p95.
pub(crate) fn boxes(title: &str, label: &str, categories: &[String], spreads: &[Option<Spread>]) -> String {
    let highest = spreads.iter().flatten().map(|spread| spread.p95).fold(0.0, f64::max);
    let mut frame = Frame::new(title, label, categories, highest, 8.0);
    for (category, spread) in (0_u32..).zip(spreads) {
        let y = middle(category);
        frame.drawing.line("g", (frame.left, y), (WIDTH - RIGHT, y));
        let Some(Spread { p5, p25, p50, p75, p95 }) = spread else { continue };
        let at = |value: &f64| frame.axis.place(*value);
        let (low, start, mid, end, high) = (at(p5), at(p25), at(p50), at(p75), at(p95));
        let hint = format!(
            "p5 {}, p25 {}, p50 {}, p75 {}, p95 {}",
            number(*p5),
            number(*p25),
            number(*p50),
            number(*p75),
            number(*p95)
        );
        frame.drawing.line("s0 w", (low, y), (high, y));
        frame.drawing.bar(0, (start, y - BAR / 2.0), ((end - start).max(1.0), BAR), &hint);
        frame.drawing.line("m5", (mid, y - BAR / 2.0), (mid, y + BAR / 2.0));
    }
    frame.drawing.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, points: &[(f64, f64)]) -> Series {
        Series { name: name.to_owned(), points: points.to_vec() }
    }

    #[test]
    fn pieces_of_a_bar_follow_each_other() {
        let all = [series("one", &[(0.0, 30.0), (1.0, 10.0)]), series("two", &[(0.0, 70.0)])];
        let svg = stacked("x", "us", &["a".to_owned(), "b".to_owned()], &all);
        let widths: Vec<f64> = svg
            .lines()
            .filter(|line| line.contains("height=\"14.0\""))
            .map(|line| line.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(widths.len(), 3);
        assert!(
            (widths[0] * 70.0 / 30.0 - widths[1]).abs() < 0.3 && (widths[0] / 3.0 - widths[2]).abs() < 0.3,
            "{widths:?}"
        );
        assert!(svg.contains("<title>two: 70</title>") && svg.contains(">100<"));
    }

    #[test]
    fn a_category_without_a_spread_has_an_empty_line() {
        let spread = Spread { p5: 1.0, p25: 2.0, p50: 3.0, p75: 4.0, p95: 10.0 };
        let svg = boxes("x", "ms", &["a".to_owned(), "b".to_owned()], &[Some(spread), None]);
        assert_eq!(svg.matches("<rect class=\"k0\"").count(), 1);
        assert!(svg.contains("p5 1, p25 2, p50 3, p75 4, p95 10"));
    }
}
