//! A folder of results: the scenario, tables to which a line is added when a point has been measured, and the report.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};
use theta::exit::Failure;

use super::{
    row::{NodeRow, Row, StageRow},
    scenario::Scenario,
};

const SCENARIO: &str = "scenario.toml";
/// The first line of that file says the scenario's name.
const NAME: &str = "# scenario: ";
const RESULTS: &str = "results.csv";
const NODES: &str = "nodes.csv";
const STAGES: &str = "stages.csv";
/// The report's file.
pub(super) const REPORT: &str = "report.html";

/// An open folder. Rows are added and never changed; a point counts when its row is in `results.csv`, which gets it last.
pub(super) struct Folder {
    path: PathBuf,
    pub(super) rows: Vec<Row>,
    pub(super) nodes: Vec<NodeRow>,
    pub(super) stages: Vec<StageRow>,
}

impl Folder {
    /// A new folder, which must not exist or be empty.
    pub(super) fn create(path: &Path, scenario: &Scenario) -> Result<Self, Failure> {
        fs::create_dir_all(path).map_err(|error| Failure::writing(path, &error))?;
        let mut entries = fs::read_dir(path).map_err(|error| Failure::reading(path, &error))?;
        if entries.next().is_some() {
            let path = path.display();
            return Err(Failure::Usage(format!(
                "{path} is not empty: name another with --out, or go on with --resume {path}"
            )));
        }
        let text = format!("{NAME}{}\n{}", scenario.name, scenario.text);
        let file = path.join(SCENARIO);
        fs::write(&file, text).map_err(|error| Failure::writing(&file, &error))?;
        Ok(Self { path: path.to_owned(), rows: Vec::new(), nodes: Vec::new(), stages: Vec::new() })
    }

    /// A folder that there is, with the scenario that it is for. A line that was not finished is cut off.
    pub(super) fn resume(path: &Path) -> Result<(Self, Scenario), Failure> {
        for name in [RESULTS, NODES, STAGES] {
            mend(&path.join(name))?;
        }
        Ok((Self::open(path)?, Self::scenario(path)?))
    }

    /// The scenario that a folder is for.
    pub(super) fn scenario(path: &Path) -> Result<Scenario, Failure> {
        let file = path.join(SCENARIO);
        let text = fs::read_to_string(&file).map_err(|error| Failure::reading(&file, &error))?;
        let (name, text) =
            text.strip_prefix(NAME).and_then(|rest| rest.split_once('\n')).unwrap_or(("scenario", &text));
        Scenario::parse(name, text).map_err(|failure| Failure::Usage(format!("{}: {failure}", file.display())))
    }

    /// Reads a folder without changing it.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let rows: Vec<Row> = read(&path.join(RESULTS))?;
        // Points that were not finished have rows in the other tables alone.
        let is_whole = |point: u32| rows.iter().any(|row| row.point == point);
        let nodes = read(&path.join(NODES))?.into_iter().filter(|row: &NodeRow| is_whole(row.point)).collect();
        let stages = read(&path.join(STAGES))?.into_iter().filter(|row: &StageRow| is_whole(row.point)).collect();
        Ok(Self { path: path.to_owned(), rows, nodes, stages })
    }

    /// The number of the next point: one that no table has.
    pub(super) fn next_point(&self) -> Result<u32, Failure> {
        let nodes: Vec<NodeRow> = read(&self.path.join(NODES))?;
        let stages: Vec<StageRow> = read(&self.path.join(STAGES))?;
        let of_rows = self.rows.iter().map(|row| row.point);
        let others = nodes.iter().map(|row| row.point).chain(stages.iter().map(|row| row.point));
        Ok(of_rows.chain(others).max().unwrap_or(0).saturating_add(1))
    }

    /// Adds a point.
    pub(super) fn add(&mut self, row: Row, nodes: Vec<NodeRow>, stages: Vec<StageRow>) -> Result<(), Failure> {
        append(&self.path.join(NODES), &nodes)?;
        append(&self.path.join(STAGES), &stages)?;
        append(&self.path.join(RESULTS), std::slice::from_ref(&row))?;
        self.rows.push(row);
        self.nodes.extend(nodes);
        self.stages.extend(stages);
        Ok(())
    }

    /// Writes the report, in the place of an older one.
    pub(super) fn write_report(&self, page: &str) -> Result<PathBuf, Failure> {
        let path = self.path.join(REPORT);
        fs::write(&path, page).map_err(|error| Failure::writing(&path, &error))?;
        Ok(path)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Cuts off a last line without an end, which a process left that was killed.
fn mend(path: &Path) -> Result<(), Failure> {
    let Ok(bytes) = fs::read(path) else { return Ok(()) };
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if whole < bytes.len() {
        let file = OpenOptions::new().write(true).open(path);
        let cut = file.and_then(|file| file.set_len(u64::try_from(whole).unwrap_or(0)));
        cut.map_err(|error| Failure::writing(path, &error))?;
    }
    Ok(())
}

/// All rows of a table; none if there is no file.
fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, Failure> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let wrong = |error: csv::Error| Failure::Usage(format!("{} is not such a table: {error}", path.display()));
    csv::Reader::from_path(path).map_err(wrong)?.into_deserialize().collect::<Result<_, _>>().map_err(wrong)
}

/// Adds rows, in one write, with the names of the columns if the file is new.
fn append<T: Serialize>(path: &Path, rows: &[T]) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    let is_new = fs::metadata(path).map_or(true, |found| found.len() == 0);
    let mut writer = csv::WriterBuilder::new().has_headers(is_new).from_writer(Vec::new());
    rows.iter().try_for_each(|row| writer.serialize(row)).map_err(Failure::internal)?;
    let bytes = writer.into_inner().map_err(Failure::internal)?;
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(&bytes)).map_err(|error| Failure::writing(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::row::Kind;

    fn scenario() -> Scenario {
        let text = "description = \"x\"\nmeasure = \"capacity\"\ngroups = [[2, 4]]\nsuites = [\"frost-ed25519\"]\n[ladder]\nfirst = 4\n";
        Scenario::parse("tiny", text).unwrap()
    }

    fn row(point: u32) -> Row {
        let first_error = "a, \"b\"; c".to_owned();
        Row { point, rate: Some(0.5), p50_ms: Some(12.25), sent: 7, first_error, ..Row::empty(Kind::Capacity) }
    }

    fn stage(point: u32) -> StageRow {
        StageRow { point, stage: "validate".to_owned(), mean_us: 1.5, p50_us: None, p95_us: Some(2.0) }
    }

    #[test]
    fn what_was_added_is_read_again() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("results");
        let mut folder = Folder::create(&path, &scenario()).unwrap();
        folder.add(row(1), Vec::new(), vec![stage(1)]).unwrap();
        folder.add(row(2), Vec::new(), Vec::new()).unwrap();
        let (again, of) = Folder::resume(&path).unwrap();
        assert_eq!((again.rows, again.stages), (folder.rows, folder.stages));
        assert_eq!((of.name, of.text), ("tiny".to_owned(), scenario().text));
        assert!(Folder::create(&path, &scenario()).err().unwrap().to_string().contains("--resume"));
    }

    #[test]
    fn a_line_that_was_not_finished_does_not_count() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("results");
        let mut folder = Folder::create(&path, &scenario()).unwrap();
        folder.add(row(1), Vec::new(), vec![stage(1)]).unwrap();
        let before = fs::read(path.join(RESULTS)).unwrap();
        folder.add(row(2), Vec::new(), vec![stage(2)]).unwrap();
        let after = fs::read(path.join(RESULTS)).unwrap();
        for cut in before.len()..after.len() {
            fs::write(path.join(RESULTS), &after[..cut]).unwrap();
            let (mut again, _) = Folder::resume(&path).unwrap();
            assert_eq!((again.rows.len(), again.stages.len()), (1, 1), "{cut}");
            assert_eq!(again.next_point().unwrap(), 3, "the second has a stage already");
            again.add(row(3), Vec::new(), vec![stage(3)]).unwrap();
            let whole = Folder::open(&path).unwrap();
            assert_eq!(whole.rows.iter().map(|row| row.point).collect::<Vec<_>>(), [1, 3]);
            fs::write(path.join(STAGES), stages_of(&[1, 2])).unwrap();
        }
    }

    fn stages_of(points: &[u32]) -> String {
        let lines = points.iter().map(|point| format!("{point},validate,1.5,,2.0\n"));
        format!("point,stage,mean_us,p50_us,p95_us\n{}", lines.collect::<String>())
    }

    #[test]
    fn other_tables_are_refused() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(RESULTS), "a,b\n1,2\n").unwrap();
        assert!(Folder::open(home.path()).err().unwrap().to_string().contains("is not such a table"));
    }
}
