//! Plots as self-contained SVG: dots by category, lines, stacked bars, boxes. Light or dark, by the reader's preference.

mod bars;

use std::fmt::Write;

pub(crate) use self::bars::{Spread, boxes, stacked};

/// One series of a plot: a name and (x, y) points. In plots of dots and bars, x is the number of the category.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Width of a plot, in pixels.
const WIDTH: f64 = 760.0;
/// Height of the area between the axes in plots of lines.
const LINES_HEIGHT: f64 = 320.0;
/// Height of a category.
const CATEGORY_HEIGHT: f64 = 22.0;
/// Space for the title.
const TOP: f64 = 40.0;
/// Space on the right.
const RIGHT: f64 = 28.0;
/// Space for the numbers and the name of the horizontal axis.
const AXIS: f64 = 44.0;
/// Height of a line of the legend.
const LEGEND_HEIGHT: f64 = 20.0;
/// Width of a letter, on average.
const LETTER: f64 = 6.8;

/// The number of colours: those of Okabe and Ito 2008, which people with any colour vision can tell apart, without black
/// and yellow, which vanish on one of the two backgrounds. Shapes and dashes distinguish more than six series, and those in
/// print.
const COLOURS: usize = 6;
const STYLE: &str = "\
.p text{font:12px system-ui,'DejaVu Sans',sans-serif;fill:#1c2024}.p .t{font-size:15px;font-weight:600}.p .e{text-anchor:end}\
.p .m{text-anchor:middle}.p .b{fill:#ffffff}.p .g{stroke:#e2e5e9;stroke-width:1;fill:none}.p .a{stroke:#8a9097;stroke-width:1;fill:none}\
.p .r{stroke:#b3261e;stroke-width:1;stroke-dasharray:4 3;fill:none}.p .l{fill:none;stroke-width:1.8}.p .h{fill-opacity:.45}.p .w{stroke-width:1.5;fill:none}.p .m5{stroke:#1c2024;stroke-width:2;fill:none}\
.p .k0{fill:#0072b2}.p .k1{fill:#d55e00}.p .k2{fill:#009e73}.p .k3{fill:#b65f93}.p .k4{fill:#c98a00}.p .k5{fill:#3a9bd6}\
.p .s0{stroke:#0072b2}.p .s1{stroke:#d55e00}.p .s2{stroke:#009e73}.p .s3{stroke:#b65f93}.p .s4{stroke:#c98a00}.p .s5{stroke:#3a9bd6}\
@media (prefers-color-scheme:dark){.p text{fill:#e4e7ea}.p .b{fill:#15181c}.p .m5{stroke:#ffffff}.p .g{stroke:#2a2f36}.p .a{stroke:#6d747c}\
.p .k0{fill:#4aa8e0}.p .s0{stroke:#4aa8e0}.p .k3{fill:#d88ab8}.p .s3{stroke:#d88ab8}.p .k1{fill:#f07b2a}.p .s1{stroke:#f07b2a}\
.p .k2{fill:#22b98d}.p .s2{stroke:#22b98d}.p .k5{fill:#8fd0ff}.p .s5{stroke:#8fd0ff}.p .k4{fill:#e6a833}.p .s4{stroke:#e6a833}}";

/// An axis: it maps numbers to positions.
struct Axis {
    from: f64,
    to: f64,
    logarithmic: bool,
    start: f64,
    end: f64,
}

impl Axis {
    /// An axis wide enough for all values, either logarithmic or linear from zero.
    fn over(values: impl Iterator<Item = f64> + Clone, logarithmic: bool, start: f64, end: f64) -> Self {
        let highest = values.clone().fold(f64::MIN, f64::max);
        let lowest = values.filter(|value| !logarithmic || *value > 0.0).fold(f64::MAX, f64::min).min(highest);
        let (from, to) = if logarithmic {
            // Ends at half decades, so that little space stays empty.
            let below = (lowest.max(1e-3).log10() * 2.0 - 0.05).floor() / 2.0;
            let above = (highest.max(1e-3).log10() * 2.0 + 0.05).ceil() / 2.0;
            (below, above.max(below + 0.5))
        } else {
            let step = step(highest);
            (0.0, (highest / step).ceil().max(1.0) * step)
        };
        Self { from, to, logarithmic, start, end }
    }

    fn place(&self, value: f64) -> f64 {
        let value = if self.logarithmic { value.max(1e-3).log10() } else { value };
        self.start + (value - self.from) / (self.to - self.from) * (self.end - self.start)
    }

    /// The values at which numbers are printed.
    fn ticks(&self) -> Vec<f64> {
        if !self.logarithmic {
            let step = step(self.to);
            let mut ticks = vec![0.0];
            while let Some(next) = ticks.last().map(|last| last + step).filter(|next| *next <= self.to * 1.000_1) {
                ticks.push(next);
            }
            return ticks;
        }
        let within = |value: &f64| (self.from - 1e-9..=self.to + 1e-9).contains(&value.log10());
        let decades = (-3..=12).map(|exponent| 10_f64.powi(exponent));
        let multiples: &[f64] = if self.to - self.from <= 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        decades.flat_map(|decade| multiples.iter().map(move |multiple| decade * multiple)).filter(within).collect()
    }
}

/// A round step, four to eight of which reach `highest`.
fn step(highest: f64) -> f64 {
    let decade = 10_f64.powf(highest.max(1e-6).log10().floor());
    let in_decade = highest / decade;
    decade
        * if in_decade > 5.0 {
            1.0
        } else if in_decade > 2.0 {
            0.5
        } else {
            0.25
        }
}

/// `0.5`, `20`, `1,000`, `10 M`.
fn number(value: f64) -> String {
    if value >= 999_999.0 {
        return format!("{} M", trimmed(value / 1e6));
    }
    let text = trimmed(value);
    match text.len() {
        4.. if !text.contains('.') => {
            let (thousands, rest) = text.split_at(text.len() - 3);
            format!("{thousands},{rest}")
        }
        _ => text,
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Escapes text for XML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A drawing in progress. Writing to a string cannot fail, so results of `write!` are dropped.
struct Drawing(String);

impl Drawing {
    fn new(title: &str, height: f64) -> Self {
        let title = escape(title);
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"p\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" \
             height=\"{height:.0}\" role=\"img\" aria-label=\"{title}\"><style>{STYLE}</style>\
             <rect class=\"b\" width=\"{WIDTH}\" height=\"{height:.0}\"/><text class=\"t\" x=\"12\" y=\"24\">{title}</text>\n"
        ))
    }

    fn raw(&mut self, element: &str) {
        self.0.push_str(element);
    }

    fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let text = escape(text);
        let _ = writeln!(self.0, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
    }

    fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(self.0, "<path class=\"{class}\" d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\"/>");
    }

    /// The mark of series `number` at a position; `hint` is shown when a pointer rests on it.
    fn mark(&mut self, series: usize, (x, y): (f64, f64), hint: &str) {
        let colour = series % COLOURS;
        let path = match series % 4 {
            0 => format!("M{:.1} {y:.1}a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0Z", x - 4.5),
            1 => format!("M{:.1} {:.1}h8v8h-8Z", x - 4.0, y - 4.0),
            2 => format!("M{x:.1} {:.1}l5 9h-10Z", y - 5.5),
            _ => format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5Z", y - 5.0),
        };
        let hint = escape(hint);
        let _ = writeln!(self.0, "<path class=\"k{colour}\" d=\"{path}\"><title>{hint}</title></path>");
    }

    fn polyline(&mut self, series: usize, points: &[(f64, f64)]) {
        let colour = series % COLOURS;
        let dash = if series < COLOURS { "" } else { " stroke-dasharray=\"6 3\"" };
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        let _ = writeln!(self.0, "<path class=\"l s{colour}\"{dash} d=\"M{}\"/>", path.join("L"));
    }

    /// The horizontal axis below `bottom`, with a grid up to [`TOP`].
    fn horizontal(&mut self, axis: &Axis, label: &str, bottom: f64) {
        for tick in axis.ticks() {
            let x = axis.place(tick);
            self.line("g", (x, TOP), (x, bottom));
            self.text("m", x, bottom + 17.0, &number(tick));
        }
        self.line("a", (axis.start, bottom), (axis.end, bottom));
        self.text("m", f64::midpoint(axis.start, axis.end), bottom + 36.0, label);
    }

    fn legend(&mut self, series: &[Series], places: &[(f64, f64)], top: f64) {
        for (number, (series, (x, y))) in series.iter().zip(places).enumerate() {
            self.mark(number, (x + 6.0, top + y - 4.0), &series.name);
            self.text("", x + 16.0, top + y, &series.name);
        }
    }

    fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

/// The positions of a legend's entries, line by line, and its height.
fn legend_places(series: &[Series]) -> (Vec<(f64, f64)>, f64) {
    let (mut x, mut y) = (12.0, LEGEND_HEIGHT);
    let mut places = Vec::new();
    for series in series {
        let width = 34.0 + LETTER * length(&series.name);
        if x + width > WIDTH && x > 12.0 {
            (x, y) = (12.0, y + LEGEND_HEIGHT);
        }
        places.push((x, y));
        x += width;
    }
    (places, y + 12.0)
}

fn length(text: &str) -> f64 {
    exact(text.chars().count())
}

fn exact(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Draws one line a category, with one dot a series. `guides` are values to mark.
pub(crate) fn dots(
    title: &str,
    label: &str,
    categories: &[String],
    series: &[Series],
    logarithmic: bool,
    guides: &[f64],
) -> String {
    let (places, legend) = legend_places(series);
    let rows = f64::from(u32::try_from(categories.len()).unwrap_or(u32::MAX));
    let bottom = TOP + 6.0 + rows * CATEGORY_HEIGHT;
    let mut drawing = Drawing::new(title, bottom + AXIS + legend);
    let left = 20.0 + LETTER * categories.iter().map(|name| length(name)).fold(0.0, f64::max);
    let values = series.iter().flat_map(|series| series.points.iter().map(|(_, value)| *value));
    let axis = Axis::over(values.chain(guides.iter().copied()), logarithmic, left, WIDTH - RIGHT);
    drawing.horizontal(&axis, label, bottom);
    let height = |category: f64| TOP + 6.0 + (category + 0.5) * CATEGORY_HEIGHT;
    for (number, name) in (0_u32..).zip(categories) {
        let y = height(f64::from(number));
        drawing.line("g", (left, y), (WIDTH - RIGHT, y));
        drawing.text("e", left - 8.0, y + 4.0, name);
    }
    for guide in guides {
        drawing.line("r", (axis.place(*guide), TOP), (axis.place(*guide), bottom));
    }
    for (number_of_series, series) in series.iter().enumerate() {
        for (category, value) in &series.points {
            let hint = format!("{}: {}", series.name, number(*value));
            drawing.mark(number_of_series, (axis.place(*value), height(*category)), &hint);
        }
    }
    drawing.legend(series, &places, bottom + AXIS);
    drawing.finish()
}

/// Draws lines; both axes are logarithmic.
pub(crate) fn lines(title: &str, x_label: &str, y_label: &str, series: &[Series]) -> String {
    let (places, legend) = legend_places(series);
    let bottom = TOP + 22.0 + LINES_HEIGHT;
    let mut drawing = Drawing::new(title, bottom + AXIS + legend);
    let points = || series.iter().flat_map(|series| series.points.iter());
    let across = Axis::over(points().map(|(x, _)| *x), true, 72.0, WIDTH - RIGHT);
    let up = Axis::over(points().map(|(_, y)| *y), true, bottom, TOP + 22.0);
    drawing.horizontal(&across, x_label, bottom);
    for tick in up.ticks() {
        let y = up.place(tick);
        drawing.line("g", (across.start, y), (across.end, y));
        drawing.text("e", across.start - 8.0, y + 4.0, &number(tick));
    }
    drawing.line("a", (across.start, TOP + 22.0), (across.start, bottom));
    drawing.text("", 12.0, TOP + 8.0, y_label);
    for (number_of_series, series) in series.iter().enumerate() {
        let places: Vec<_> = series.points.iter().map(|(x, y)| (across.place(*x), up.place(*y))).collect();
        drawing.polyline(number_of_series, &places);
        for (place, (x, y)) in places.iter().zip(&series.points) {
            let hint = format!("{}: {} at {}", series.name, number(*y), number(*x));
            drawing.mark(number_of_series, *place, &hint);
        }
    }
    drawing.legend(series, &places, bottom + AXIS);
    drawing.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        for (value, text) in [(0.5, "0.5"), (20.0, "20"), (1_000.0, "1,000"), (16_777_216.0, "16.777 M"), (1e6, "1 M")]
        {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn axes_hold_their_values_and_have_numbers() {
        for (values, logarithmic) in [([3.0, 900.0], true), ([0.9, 1.3], false), ([5.0, 5.0], true), ([0.0, 0.0], true)]
        {
            let axis = Axis::over(values.into_iter(), logarithmic, 100.0, 700.0);
            for value in values {
                assert!((99.9..=700.1).contains(&axis.place(value)), "{values:?}");
            }
            assert!(axis.ticks().len() <= 12, "{:?}", axis.ticks());
        }
        assert_eq!(Axis::over([3.0, 900.0].into_iter(), true, 0.0, 1.0).ticks().len(), 4, "whole decades: 1 to 1,000");
    }

    #[test]
    fn names_are_escaped() {
        let series = [Series { name: "a<b&c".to_owned(), points: vec![(0.0, 1.0)] }];
        let svg = dots("\"x\"", "us", &["<i>".to_owned()], &series, true, &[]);
        assert!(svg.contains("a&lt;b&amp;c") && svg.contains("&quot;x&quot;") && !svg.contains("<i>"));
    }
}
