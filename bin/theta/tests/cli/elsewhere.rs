//! What the product does not contain: the demo with its Byzantine node, and the measurements. The help says where they are.

use crate::harness::{EXE, theta_in};

#[test]
fn demo_and_laboratory_are_elsewhere_and_it_says_where() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, words) in [
        (&["bench"][..], "cargo run --release -p theta-bench --"),
        (&["bench", "--help"], "cargo run --release -p theta-bench -- --help"),
        (&["bench", "load", "--local", "-n", "7"], "cargo run --release -p theta-bench -- load --local -n 7"),
        (&["demo"], "cargo run --release -- demo"),
        (&["demo", "--keep"], "cargo run --release -- demo --keep"),
    ] {
        let run = theta_in(dir.path(), arguments).fails(2, &[words, "not part of theta"]);
        assert_eq!((run.stderr.lines().count(), run.stdout.len()), (1, 0), "{run:?}");
    }
    let help = theta_in(dir.path(), &["--help"]).ok().text();
    for program in
        ["theta-demo ", "theta-bench ", "cargo run --release -- demo", "cargo run --release -p theta-bench --"]
    {
        assert!(help.contains(program), "no {program:?} in {help}");
    }
    let commands = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    assert!(!commands.contains("bench") && !commands.contains("demo"), "{commands}");
}

/// aws-lc's jitter entropy used to take 70 ms of CPU at the start of every command: see decision 3.
#[test]
fn the_product_does_not_wait_for_the_jitter_of_a_clock() {
    let program = std::fs::read(EXE).unwrap();
    let has = |text: &str| program.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("aws_lc_"), "the library's names are found in the program");
    assert!(!has("jent_entropy_init"), "AWS_LC_SYS_NO_JITTER_ENTROPY is not set where aws-lc was built");
}

/// A text in the help of the Byzantine node's command; the test of `theta-demo` finds it there.
const LIAR: &str = "node that sends false shares";

#[test]
fn the_product_has_no_liar() {
    let dir = tempfile::tempdir().unwrap();
    let liar = theta_in(dir.path(), &["_x_liar", "--dir", "node-1"]).fails(2, &["unrecognized subcommand"]);
    assert!(!liar.stderr.contains("similar"), "{liar:?}");
    let program = std::fs::read(EXE).unwrap();
    let has = |text: &str| program.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("Run a node of a group"), "the commands' texts are found in the program");
    assert!(!has(LIAR) && !has("_x_liar"), "the product has the demo's liar");
}
