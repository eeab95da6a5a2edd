//! `theta-rpki override show`.

use std::path::PathBuf;

use clap::Args;
use theta_rpki::overrides::Overriding;

use super::{
    super::{failure::Failure, files, known, moment::Moment, tally::Tally, terminal::Form},
    check,
    report::{Report, Words},
};

/// Options of `theta-rpki override show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  theta-rpki override show --registry registry.toml acme.toml")]
pub(crate) struct ShowArgs {
    /// The registry's data, which name the operators
    #[arg(long, value_name = "FILE")]
    registry: PathBuf,
    /// The override
    #[arg(value_name = "OVERRIDE")]
    file: PathBuf,
    #[command(flatten)]
    form: Form,
}

/// `theta-rpki override show`.
pub(super) fn show(args: &ShowArgs) -> Result<(), Failure> {
    let (path, registry) = (&args.file, known::registry(&args.registry)?);
    let text = files::read(path)?;
    let checked = check(&text, path, &registry)?;
    let what = &checked.what;
    let now = Moment::now();
    let reason = match Overriding::signed(&text, registry.operators.as_ref()) {
        Err(error) => Some(error.to_string()),
        Ok(one) if one.until() <= now.0 => Some(format!("it ended at {}", Moment(one.until()))),
        Ok(one) => {
            one.begins().filter(|begins| now.0 < *begins).map(|begins| format!("it begins at {}", Moment(begins)))
        }
    };
    let tally = Tally::of(checked.operators, &what.signed_bytes(), &checked.signatures);
    let report = Report::new(path, what, tally).with_standing(reason);
    args.form.answer(&report, &report.words(Words(what)))
}
