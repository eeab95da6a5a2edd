//! The plots as PNG, with the system's fonts.

use std::sync::Arc;

use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{Options, Tree, fontdb::Database},
};
use theta::exit::Failure;

use super::charts::Chart;

/// Pixels for each pixel of the SVG.
const SCALE: f32 = 2.0;

/// Renders all plots.
pub(super) fn all(charts: &[Chart]) -> Result<Vec<Vec<u8>>, Failure> {
    let mut fonts = Database::new();
    fonts.load_system_fonts();
    let family = fonts.faces().find(|face| face.families.iter().any(|(name, _)| name == "DejaVu Sans"));
    if let Some(name) = family.or_else(|| fonts.faces().next()).and_then(|face| face.families.first()) {
        let name = name.0.clone();
        fonts.set_sans_serif_family(name);
    }
    let options = Options { fontdb: Arc::new(fonts), ..Options::default() };
    charts.iter().map(|chart| draw(&chart.svg, &options)).collect()
}

fn draw(svg: &str, options: &Options<'_>) -> Result<Vec<u8>, Failure> {
    let tree = Tree::from_str(svg, options).map_err(Failure::internal)?;
    let size = tree.size().to_int_size().scale_by(SCALE).ok_or_else(|| Failure::internal("a plot without a size"))?;
    let mut image =
        Pixmap::new(size.width(), size.height()).ok_or_else(|| Failure::internal("a plot without a size"))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut image.as_mut());
    image.encode_png().map_err(Failure::internal)
}
