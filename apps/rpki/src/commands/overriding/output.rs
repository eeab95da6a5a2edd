//! What every new override has: why, until when, and where it goes.

use std::path::PathBuf;

use clap::Args;
use theta_rpki::registry::Registry;

use super::{
    super::{
        failure::Failure,
        files,
        moment::Moment,
        signer::Signer,
        tally::Tally,
        terminal::{Form, note},
    },
    check,
    report::{Report, Words},
    text::Text,
};

/// Why, until when, and where it goes.
#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// Why, in one line
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: String,
    /// When it ends, as 2026-11-21T08:30:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "days")]
    until: Option<Moment>,
    /// After how many days it ends
    #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// The operator's private key that signs at once
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Where to write the override
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    form: Form,
}

impl OutputArgs {
    /// When what begins at this time ends.
    pub(super) fn until(&self, from: Moment) -> i64 {
        self.until.unwrap_or_else(|| from.plus_days(self.days)).0
    }

    /// Writes a new file, signed at once if there is a key to do so, and says what it is.
    pub(super) fn write(&self, text: &Text, registry: &Registry) -> Result<(), Failure> {
        let out = &self.out;
        let mut text = text.to_toml()?;
        // What is signed is what others will read.
        let checked = check(&text, out, registry)?;
        let bytes = checked.what.signed_bytes();
        if let Some(key) = &self.key {
            let signer = Signer::open(key)?;
            signer.belongs_to(checked.operators, "the operators")?;
            text = signer.append(&text, &bytes);
        }
        let checked = check(&text, out, registry)?;
        files::write_new(out, text.as_bytes(), files::PUBLIC)?;
        note(format_args!("wrote {}", out.display()));
        let tally = Tally::of(checked.operators, &bytes, &checked.signatures);
        let report = Report::new(out, &checked.what, tally);
        self.form.answer(&report, &report.words(Words(&checked.what)))
    }
}
