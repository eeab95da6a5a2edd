//! The program, as another program runs it.

use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::repository::{Authority, Files, from_now, leave};

const EXE: &str = env!("CARGO_BIN_EXE_theta-rpki-publication");

struct Folders {
    objects: TempDir,
    output: TempDir,
}

impl Folders {
    fn publish(&self, more: &[&str]) -> Output {
        let mut command = Command::new(EXE);
        command.args(["publish", "--base", "https://rpki.example.net/rrdp", "--json", "--objects"]);
        command.arg(self.objects.path()).arg("--output").arg(self.output.path()).args(more);
        command.output().unwrap()
    }
}

fn only_line(output: &Output) -> Value {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1, "{text}");
    serde_json::from_str(lines[0]).unwrap()
}

#[test]
fn each_run_is_a_line_of_json() {
    let folders = Folders { objects: tempfile::tempdir().unwrap(), output: tempfile::tempdir().unwrap() };
    let (parent, child) = (Authority::new(), Authority::named("child"));
    let certificates = Files::from([("child.cer".to_owned(), parent.certificate_of(&child))]);
    leave(&parent.files(1, from_now(3600), &certificates), folders.objects.path(), "ca");
    let manifest = child.at("mft").to_string();

    let refused = folders.publish(&[]);
    assert_eq!(refused.status.code(), Some(1));
    let line = only_line(&refused);
    assert_eq!([&line["outcome"], &line["code"], &line["object"]], ["failed", "missing-point", manifest.as_str()]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains(&manifest));

    let published = folders.publish(&["--without", &manifest]);
    assert_eq!(published.status.code(), Some(0));
    let line = only_line(&published);
    assert_eq!(line["outcome"], "published");
    assert_eq!([&line["serial"], &line["new"], &line["changed"], &line["gone"]], [1, 3, 0, 0]);
    assert_eq!(line["warnings"][0]["code"], "missing-point");
    assert!(String::from_utf8_lossy(&published.stderr).contains("1 warning"));

    let unchanged = only_line(&folders.publish(&[]));
    assert_eq!((&unchanged["outcome"], unchanged["warnings"].as_array().unwrap().len()), (&json!("unchanged"), 1));
    assert_eq!(folders.publish(&["--without", "nowhere"]).status.code(), Some(2));
}

#[test]
fn due_is_a_line_of_json_for_each_point() {
    let (objects, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    leave(&authority.files(1, from_now(3600), &Files::new()), objects.path(), "ca");
    let output = Command::new(EXE).args(["due", "--json", "--objects"]).arg(objects.path()).output().unwrap();
    let line = only_line(&output);
    assert_eq!((&line["step"], &line["crl"]), (&json!("wait"), &Value::Null));
    assert_eq!(line["manifest"], authority.at("mft").as_str());
    assert!(line["from"].as_str().unwrap() < line["expires"].as_str().unwrap());
}
