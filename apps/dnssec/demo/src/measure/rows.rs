//! What came of the points: a line for each as it comes, and a table of all at the end.

use serde::Serialize;
use theta::{
    exit::Failure,
    output::{BAD, GOOD, Output, Table},
};

/// What came of one point.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Row {
    /// The version of Knot DNS, such as 3.4.6.
    pub(crate) knot: String,
    /// Who signs: a group as `2 of 3`, `softhsm` or `files`.
    pub(crate) signer: String,
    /// The algorithm.
    pub(crate) algorithm: String,
    /// Whether signatures were made before Knot asked for them.
    pub(crate) look_ahead: bool,
    /// Whether each node asked an agent about them.
    pub(crate) agents: bool,
    /// How many names the zone has.
    pub(crate) names: usize,
    /// How many signatures are in it; those that were there when patience ended.
    pub(crate) signatures: usize,
    /// Why the zone is not signed; of one that is, `ldns-verify-zone` has found nothing wrong with it.
    pub(crate) objection: Option<String>,
    /// Whether that is a failure: it is none that patience ended, or that Knot says what it cannot do.
    pub(crate) failed: bool,
    /// From the server's start until the zone is signed and written, or until it was known that it is not, in milliseconds.
    pub(crate) signed_ms: u64,
    /// Signatures in each second of that.
    pub(crate) a_second: f64,
    /// The median of what a change of one name takes, until it is signed and served, in milliseconds.
    pub(crate) change_ms: Option<f64>,
    /// Why there was no change, if the zone was signed.
    pub(crate) no_change: Option<String>,
    /// CPU of a node for a signature, of the zone and of changes, in microseconds.
    pub(crate) node_us: Option<f64>,
    /// The same of an agent, without what it took to start.
    pub(crate) agent_us: Option<f64>,
}

/// All that there are so far.
pub(super) struct Rows {
    output: Output,
    all: Vec<Row>,
}

impl Rows {
    pub(super) const fn new(output: Output) -> Self {
        Self { output, all: Vec::new() }
    }

    /// Prints one, and keeps it.
    pub(super) fn add(&mut self, row: Row) -> Result<(), Failure> {
        self.output.result(&row, |out| {
            let (way, asking) = (on(row.look_ahead), on(row.agents));
            let Row { signer, algorithm, names, signatures, signed_ms, a_second, .. } = &row;
            write!(out, "   {signer}, {algorithm}, {names} names, look-ahead {way}, agents {asking}: ")?;
            match &row.objection {
                None => writeln!(
                    out,
                    "{GOOD}signed{GOOD:#}, {signatures} signatures in {signed_ms} ms, {a_second:.0}/s, a change in {}, {} of CPU a node{}",
                    shown(row.change_ms, "ms"),
                    shown(row.node_us, "us"),
                    row.agent_us.map_or_else(String::new, |us| format!(", {us:.1} us an agent"))
                ),
                Some(objection) => {
                    writeln!(out, "{BAD}not signed{BAD:#} after {signed_ms} ms, {signatures} signatures: {objection}")
                }
            }?;
            row.no_change.iter().try_for_each(|words| writeln!(out, "   Knot takes no change: {words}"))
        })?;
        self.all.push(row);
        Ok(())
    }

    /// Prints all once more as a table. Programs have each row already.
    pub(super) fn table(&self) -> Result<(), Failure> {
        if self.output.json() || self.all.is_empty() {
            return Ok(());
        }
        self.output.result(&self.all, |out| {
            writeln!(out)?;
            // All are of one.
            self.all.first().map_or(Ok(()), |row| writeln!(out, "Knot DNS {}", row.knot))?;
            let columns = [
                "signed by",
                "algorithm",
                "look-ahead",
                "agents",
                "names",
                "signatures",
                "zone signed",
                "signatures/s",
                "one change",
                "CPU a node",
                "CPU an agent",
            ];
            let mut table = Table::new(&columns, &[4, 5, 6, 7, 8, 9, 10]);
            for row in &self.all {
                let zone = if row.objection.is_none() { format!("{} ms", row.signed_ms) } else { "no".to_owned() };
                table.row([
                    row.signer.clone(),
                    row.algorithm.clone(),
                    on(row.look_ahead).to_owned(),
                    on(row.agents).to_owned(),
                    row.names.to_string(),
                    row.signatures.to_string(),
                    zone,
                    format!("{:.0}", row.a_second),
                    shown(row.change_ms, "ms"),
                    shown(row.node_us, "us"),
                    shown(row.agent_us, "us"),
                ]);
            }
            table.write(out)
        })
    }

    /// Fails if a point has.
    pub(super) fn outcome(&self) -> Result<(), Failure> {
        match self.all.iter().filter(|row| row.failed).count() {
            0 => Ok(()),
            failed => Err(Failure::Failed(format!("{failed} of {} points failed, as said above", self.all.len()))),
        }
    }
}

const fn on(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

fn shown(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1} {unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_fails_the_command_and_what_was_late_does_not() {
        let row =
            |objection: Option<&str>, failed| Row { objection: objection.map(str::to_owned), failed, ..Row::default() };
        let outcome = |all| Rows { output: Output::new(true), all }.outcome();
        assert_eq!(outcome(vec![row(None, false), row(Some("not in time"), false)]), Ok(()));
        let failed = outcome(vec![row(None, false), row(Some("the name server has ended"), true)]);
        assert_eq!(failed, Err(Failure::Failed("1 of 2 points failed, as said above".to_owned())));
    }
}
