//! The commands of the README, run as they stand there by a shell: whoever pastes them gets what it says.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::harness::{EXE, base_port, let_in};

/// The blocks of commands between two headings of the README.
fn blocks(from: &str, to: &str) -> Vec<String> {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let (_, rest) = readme.split_once(from).unwrap();
    let (part, _) = rest.split_once(to).unwrap();
    let blocks = part.split("```sh\n").skip(1);
    blocks.map(|block| block.split_once("```").unwrap().0.to_owned()).collect()
}

/// Waits until the nodes answer.
const READY: &str = "for _ in $(seq 300); do theta status > /dev/null && break; sleep 0.2; done; theta status";

/// Puts something in the place of what stands there exactly once.
#[track_caller]
fn instead(script: &str, of: &str, new: &str) -> String {
    assert_eq!(script.matches(of).count(), 1, "{of} in {script}");
    script.replace(of, new)
}

/// Runs commands in a folder. Each must succeed; what they leave running ends with them.
#[track_caller]
fn run(folder: &Path, commands: &str) -> String {
    let script = format!("set -euo pipefail; set -m; trap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT\n{commands}");
    let programs = Path::new(EXE).parent().unwrap().to_str().unwrap();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).current_dir(folder).env("PATH", path).env("TMPDIR", folder).stdin(Stdio::null());
    shell.env_remove("THETA_CLIENT");
    let output = shell.output().unwrap();
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}\n{told}\n{errors}");
    told.into_owned()
}

#[test]
fn five_minutes_are_as_they_stand() {
    let commands = blocks("## Five minutes", "## In earnest").concat();
    // The programs of this test in the place of a release build; ports that are free here; and a dev build starts slowly.
    let commands = instead(&commands, "cargo build --release && export PATH=\"$PWD/target/release:$PATH\"\n", "");
    let init = "theta group init --nodes 4 --threshold 2";
    let commands = instead(&commands, init, &format!("{init} --base-port {}", base_port(4)));
    let commands = instead(&commands, "sleep 1; theta status", READY);
    let folder = TempDir::new().unwrap();
    let told = run(folder.path(), &commands);
    for word in
        ["Three may keep a secret", "good signature", "Signature Verified Successfully", "ALLOWED", "exit code 3"]
    {
        assert!(told.contains(word), "{word} in {told}");
    }
}

#[test]
fn four_organisations_found_a_group_as_it_stands() {
    let blocks = blocks("## In earnest", "### Later");
    let [init, assemble, join, client, run_nodes] = &blocks[..] else { panic!("{blocks:?}") };
    let base = base_port(4);
    let init = (1..=4).fold(init.clone(), |init, node| {
        let ports = |base: u16| [base + 10 * node, base + 10 * node + 1];
        let there = ports(7_200).into_iter().zip(ports(base));
        there.fold(init, |init, (old, new)| instead(&init, &format!("localhost:{old}"), &format!("localhost:{new}")))
    });
    let folder = TempDir::new().unwrap();
    let told = run(folder.path(), &[init, assemble.clone()].concat());
    // What the four say to each other: thirteen groups of four digits.
    let is_fingerprint = |line: &&str| line.split('-').count() == 13 && line.split('-').all(|word| word.len() == 4);
    let fingerprint = told.lines().map(str::trim).find(is_fingerprint).unwrap();
    let spoken = |commands: &str| instead(commands, "'XEVM-0ACS-QDGE-...'", &format!("'{fingerprint}'"));
    run(folder.path(), &in_each_terminal(&spoken(join)));
    let told = run(folder.path(), &spoken(client));
    for name in ["alpha", "beta", "gamma", "delta"] {
        let_in(&folder.path().join(name).join("policy.toml"), policy_lines(&told));
    }
    let run_nodes =
        in_each_terminal(run_nodes).replace("theta node run --dir alpha", "theta node run --dir alpha 2> alpha.log &");
    let run_nodes = ["beta", "gamma", "delta"].iter().fold(run_nodes, |commands, name| {
        let node = format!("theta node run --dir {name}");
        instead(&commands, &node, &format!("{node} 2> {name}.log &"))
    });
    let create = "theta keys create";
    let ready = format!("echo letter > letter.txt; {READY}\n{create}");
    // Ann's signature is good by the group's own key.
    let verify = "\ntheta verify letter.txt letter.txt.sig";
    let told = run(folder.path(), &[&instead(&run_nodes, create, &ready), verify].concat());
    assert!(told.contains("good signature of the key release"), "{told}");
}

/// Does what stands there for one terminal in all four.
fn in_each_terminal(commands: &str) -> String {
    let lines = commands.lines().map(|line| match line.split_once("# and so in each terminal") {
        None => format!("{line}\n"),
        Some((command, _)) => {
            let command = command.trim_end();
            let others = ["beta", "gamma", "delta"].map(|name| instead(command, "alpha", name));
            format!("{command}\n{}\n", others.join("\n"))
        }
    });
    lines.collect()
}

/// The lines for `policy.toml` among what `theta client new` prints.
fn policy_lines(printed: &str) -> &str {
    let (_, lines) = printed.split_once("For policy.toml").unwrap();
    let lines = &lines[lines.find("[[client]]").unwrap()..];
    lines.split("\n\n").next().unwrap()
}
