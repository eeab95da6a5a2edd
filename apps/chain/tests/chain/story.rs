//! What people see: the demonstration, which checks itself, and its table.

use std::process::Command;

use super::{EXE, cometbft, turn};

#[test]
fn a_front_runner_gains_from_what_it_can_read_and_from_nothing_else() {
    let Some(cometbft) = cometbft() else { return };
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let mut demo = Command::new(EXE);
    demo.args(["demo", "--json", "--dir"]).arg(dir.path().join("net")).arg("--cometbft").arg(cometbft);
    let output = demo.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    let acts: Vec<&str> = rows.iter().map(|row| row["act"].as_str().unwrap()).collect();
    assert_eq!(acts, ["readable", "sealed", "one is dead", "false keys", "after the halt", "false execution"]);
    // The control: the same front-runner, the same orders.
    assert!(rows[0]["lost"].as_u64().unwrap() > 0 && rows[0]["gained"].as_i64().unwrap() > 0, "{rows:?}");
    for row in &rows[1..] {
        assert_eq!((row["lost"].as_u64(), row["gained"].as_i64()), (Some(0), Some(0)), "{row}");
    }
    for words in [
        "bought before her and sold after",
        "none was read in time",
        "without an order the slot is void",
        "with the validators' order the first message is signed, by all 4 nodes",
        "its own node: ",
        // The others' nodes do not even let it connect.
        "node 1: ",
        "its label is of another chain, trader or number",
        "and names validator 4",
        "nothing is ordered, so nothing is opened",
        "what the liar computes is not the hash in the header",
    ] {
        assert!(said.contains(words), "no {words:?} in {said}");
    }
}

#[test]
fn wrong_programs_and_directories_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let output = Command::new(EXE).arg("demo").args(words).current_dir(dir.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = run(&["--cometbft", "/bin/true"]);
    assert!(code == Some(2) && said.contains("/bin/true is no CometBFT of version 0.38"), "{said}");
    let (code, said) = run(&["--cometbft", "/no/such/program"]);
    assert!(code == Some(2) && said.contains("/no/such/program"), "{said}");
    if let Some(cometbft) = cometbft() {
        std::fs::create_dir(dir.path().join("there")).unwrap();
        let (code, said) = run(&["--dir", "there", "--cometbft", cometbft.to_str().unwrap()]);
        assert!(code == Some(1) && said.contains("cannot write there"), "{said}");
    }
}
