//! What the product does not contain: the demo with its Byzantine node, and the measurements. The help says where they are.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
};

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

/// `theta dnssec` and `theta rpki` are programs that stand beside the product or are in PATH; here they are shell scripts that tell what they
/// were given.
#[test]
fn agents_of_zones_and_registries_are_found_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let [product, path] = ["bin", "path"].map(|name| dir.path().join(name));
    for folder in [&product, &path] {
        fs::create_dir(folder).unwrap();
    }
    let theta = product.join("theta");
    fs::hard_link(EXE, &theta).or_else(|_| fs::copy(EXE, &theta).map(drop)).unwrap();
    let ask = |words: &[&str]| {
        let asked = Command::new(&theta).args(words).env("PATH", &path).output().unwrap();
        let [stdout, stderr] = [asked.stdout, asked.stderr].map(|said| String::from_utf8(said).unwrap());
        (asked.status.code(), stdout, stderr)
    };
    let (code, _, missing) = ask(&["dnssec", "agent", "--help"]);
    assert!(
        code == Some(2) && missing.contains("cargo run --release -p theta-dnssec -- agent --help"),
        "{code:?} {missing}"
    );
    let script = |folder: &Path, name: &str, says: &str| {
        let file = folder.join(name);
        fs::write(&file, format!("#!/bin/sh\necho {says} \"$@\"\nexit 3\n")).unwrap();
        fs::set_permissions(file, Permissions::from_mode(0o755)).unwrap();
    };
    script(&path, "theta-dnssec", "in PATH:");
    assert_eq!(ask(&["dnssec", "agent", "--help"]), (Some(3), "in PATH: agent --help\n".into(), String::new()));
    script(&product, "theta-dnssec", "beside:");
    script(&product, "theta-rpki", "beside:");
    assert_eq!(ask(&["dnssec", "--help"]), (Some(3), "beside: --help\n".into(), String::new()));
    assert_eq!(ask(&["--json", "rpki", "check"]), (Some(3), "beside: --json check\n".into(), String::new()));
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
