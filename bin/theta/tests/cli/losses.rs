//! What must not be lost, and what must not be left behind: inputs, unfinished files, secrets.

use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::harness::{EXE, Group, Run, command, theta_with_stdin};

const TEXT: &[u8] = b"What is known to one is not known to none.\n";

/// The number of files in a directory.
fn count(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

/// A directory with the public key `files` of the shared group.
fn with_public_key() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::copy(Group::shared().path().join("theta-group/client/keys/files.pub"), dir.path().join("files.pub")).unwrap();
    dir
}

#[test]
fn an_output_never_takes_the_place_of_its_input() {
    let group = Group::shared();
    let name = group.file("loss.txt", TEXT);
    group.theta(&["encrypt", &name]).ok();
    let sealed = group.read("loss.txt.theta");
    let path = |name: &str| group.path().join(name);
    std::os::unix::fs::symlink(path(&name), path("loss.link")).unwrap();
    fs::hard_link(path(&name), path("loss.hard")).unwrap();
    for output in [name.as_str(), "./loss.txt", "loss.link", "loss.hard"] {
        group.theta(&["encrypt", &name, "-o", output]).fails(2, &["is the input", "-o"]);
        group.theta(&["sign", &name, "-o", output]).fails(2, &["is the input", "-o"]);
    }
    group.theta(&["decrypt", "loss.txt.theta", "-o", "loss.txt.theta"]).fails(2, &["is the input"]);
    group.theta(&["decapsulate", "loss.txt.theta", "-o", "loss.txt.theta"]).fails(2, &["is the input"]);
    let stdin = fs::File::open(path(&name)).unwrap();
    let piped = command().args(["encrypt", "-", "-o", &name]).current_dir(group.path()).stdin(stdin).output().unwrap();
    Run::from(piped).fails(2, &["loss.txt is the input, standard input"]);
    assert_eq!(group.read(&name), TEXT);
    assert_eq!(group.read("loss.txt.theta"), sealed);
}

/// Starts a command whose standard input stays open, and waits until its draft is there.
fn begun(dir: &Path, program: &mut Command, input: &[u8]) -> Child {
    let before = count(dir);
    let mut child =
        program.current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(input).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while count(dir) == before {
        assert!(Instant::now() < deadline, "it does not begin");
        thread::sleep(Duration::from_millis(10));
    }
    child
}

fn signalled(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

const SIGNALS: [(&str, i32); 3] = [("-HUP", 129), ("-INT", 130), ("-TERM", 143)];

#[test]
fn a_command_that_is_ended_leaves_nothing() {
    for (signal, code) in SIGNALS {
        let dir = with_public_key();
        let mut encrypt = command();
        encrypt.args(["encrypt", "-", "-o", "out", "--public-key", "files.pub"]);
        let mut child = begun(dir.path(), &mut encrypt, b"");
        signalled(&child, signal);
        // Waiting closes standard input, which this test must keep open.
        let stdin = child.stdin.take();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        assert_eq!(count(dir.path()), 1, "only the public key");
        drop(stdin);
    }
}

#[test]
fn a_decryption_that_is_ended_leaves_no_plaintext() {
    let group = Group::shared();
    group.file("ended.txt", vec![7; 3_000_000]);
    group.theta(&["encrypt", "ended.txt"]).ok();
    group.theta(&["decapsulate", "ended.txt.theta", "-o", "ended.key"]).ok();
    let sealed = group.read("ended.txt.theta");
    for (signal, code) in SIGNALS {
        let dir = tempfile::tempdir().unwrap();
        let mut decrypt = command();
        decrypt.args(["decrypt", "-", "-o", "out", "--payload-key"]).arg(group.path().join("ended.key"));
        let mut child = begun(dir.path(), &mut decrypt, &sealed[..2_000_000]);
        signalled(&child, signal);
        let stdin = child.stdin.take();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        assert_eq!(count(dir.path()), 0, "{signal}");
        drop(stdin);
    }
}

#[test]
fn a_group_that_is_not_finished_leaves_no_keys() {
    for (signal, code) in SIGNALS {
        let dir = tempfile::tempdir().unwrap();
        // Finding the primes of such a key takes minutes.
        let mut init = command();
        init.args(["group", "init", "--nodes", "2", "--threshold", "1", "--keys", "rsa=sh00-pkcs1-sha256"]);
        init.args(["--bits", "4096"]);
        let mut child = begun(dir.path(), &mut init, b"");
        signalled(&child, signal);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        assert_eq!(count(dir.path()), 0, "{signal}");
    }
}

/// Of a store that is not restored to its end nothing is left, nor of the key that was to seal it.
#[test]
fn a_restore_that_does_not_end_leaves_nothing() {
    let group = Group::made_with(&["--keys", "sign=frost-ed25519"]);
    let (node, seal) = (group.node_dir(1), ["--seal", "file:theta-group/node-2/store.key"]);
    group.theta(&[&["keys", "backup", "--dir", "theta-group/node-1", "-o", "b"], &seal[..]].concat()).ok();
    let backup = group.read("b");
    fs::remove_file(node.join("theta.redb")).unwrap();
    fs::remove_file(node.join("store.key")).unwrap();
    let before = count(&node);
    let floors = ["--refuse-days-before", "tomorrow", "--refuse-other-slots", "0"];
    let restore = |file| [&["keys", "restore", file, "--dir", "theta-group/node-1"], &seal[..], &floors[..]].concat();
    for (signal, code) in SIGNALS {
        let mut command = command();
        command.args(restore("-")).current_dir(group.path());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(&backup[..backup.len() / 2]).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        // The key, and the draft of the store.
        while count(&node) < before + 2 {
            assert!(Instant::now() < deadline, "it does not begin");
            thread::sleep(Duration::from_millis(10));
        }
        signalled(&child, signal);
        let stdin = child.stdin.take();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        assert_eq!(count(&node), before, "{signal}");
        drop(stdin);
    }
    group.file("half", &backup[..backup.len() / 2]);
    group.theta(&restore("half")).fails(1, &[]);
    assert_eq!(count(&node), before);
    group.theta(&restore("b")).ok();
    assert_eq!(count(&node), before + 2);
    group.theta(&["audit", "verify", "--dir", "theta-group/node-1"]).ok();
}

/// A command that is started with nohup goes on when the terminal is closed.
#[test]
fn a_signal_that_was_ignored_from_the_start_ends_nothing() {
    let dir = with_public_key();
    let mut nohup = Command::new("sh");
    nohup.args(["-c", "trap '' HUP; exec \"$0\" encrypt - -o out --public-key files.pub", EXE]);
    let mut child = begun(dir.path(), &mut nohup, TEXT);
    signalled(&child, "-HUP");
    thread::sleep(Duration::from_millis(500));
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(dir.path().join("out").is_file());
}

/// Runs `theta` on a terminal of its own; what it prints there is in `stdout`.
fn on_a_terminal(group: &Group, arguments: &[&str]) -> Run {
    let python = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let mut command = Command::new("python3");
    command.args(["-c", python, EXE]).args(arguments).current_dir(group.path()).stdin(Stdio::null());
    command.env("NO_COLOR", "1").output().unwrap().into()
}

#[test]
fn what_no_terminal_can_show_does_not_go_to_one() {
    let group = Group::shared();
    group.file("shown.txt", TEXT);
    group.file("binary", b"\x1b[2J and \0");
    group.theta(&["encrypt", "shown.txt"]).ok();
    group.theta(&["encrypt", "binary"]).ok();
    let refused: [(&[&str], &str); 6] = [
        (&["encrypt", "shown.txt", "-o", "-"], "a ciphertext is binary"),
        (&["sign", "shown.txt", "-o", "-"], "a signature is binary"),
        (&["decapsulate", "shown.txt.theta", "-o", "-"], "a payload key is binary"),
        (&["coin", "terminal", "--proof", "-"], "a proof is binary"),
        (&["keys", "export", "sign", "--format", "raw"], "a raw public key is binary"),
        (&["decrypt", "binary.theta", "-o", "-"], "binary.theta holds something other than text"),
    ];
    for (arguments, words) in refused {
        let run = on_a_terminal(group, arguments);
        let text = run.text();
        assert_eq!(run.code, 2, "{run:?}");
        assert!(text.contains(words) && text.contains("pipe it"), "{arguments:?}: {text:?}");
        assert!(!text.contains('\u{1b}') && !text.contains('\0'), "{arguments:?}: {text:?}");
    }
    let shown = on_a_terminal(group, &["decrypt", "shown.txt.theta", "-o", "-"]).ok().text();
    assert!(shown.contains("not known to none."), "{shown}");
    // A pipe accepts anything.
    let piped = theta_with_stdin(group.path(), &["decrypt", "binary.theta", "-o", "-"], b"").ok();
    assert_eq!(piped.stdout, b"\x1b[2J and \0");
}

#[test]
fn secrets_that_others_can_read_are_not_used() {
    let group = Group::shared();
    let message = group.file("exposed.txt", TEXT);
    group.theta(&["encrypt", &message]).ok();
    group.theta(&["approver", "new", "--name", "ann"]).ok();
    group.theta(&["token", "new", "--name", "bot"]).ok();
    group.theta(&["decapsulate", "exposed.txt.theta", "-o", "exposed.key"]).ok();
    // A copy of the client directory with its request key, because other tests use the original.
    fs::create_dir(group.path().join("exposed")).unwrap();
    for file in ["client.crt", "client.key", "request.key", "group.toml"] {
        fs::copy(group.path().join("theta-group/client").join(file), group.path().join("exposed").join(file)).unwrap();
    }
    fs::create_dir(group.path().join("exposed/keys")).unwrap();
    let key = "theta-group/client/keys/sign.pub";
    fs::copy(group.path().join(key), group.path().join("exposed/keys/sign.pub")).unwrap();
    let approve =
        ["approve", "--as", "ann.key", "--operation", "sign", "--key", "sign", "--message", &message, "--yes"];
    let uses: [(&str, &[&str]); 4] = [
        ("ann.key", &approve),
        ("exposed/request.key", &["sign", &message, "-o", "s", "--sign-request", "--client", "exposed"]),
        ("exposed.key", &["decrypt", "exposed.txt.theta", "-o", "p", "--payload-key", "exposed.key"]),
        ("bot.token", &["status", "--token-file", "bot.token"]),
    ];
    for (secret, arguments) in uses {
        let set = |mode| fs::set_permissions(group.path().join(secret), fs::Permissions::from_mode(mode)).unwrap();
        for mode in [0o644, 0o640, 0o620] {
            set(mode);
            let words = format!("{secret} is a secret, and others can read or change it (mode {mode:04o})");
            group.theta(arguments).fails(2, &[&words, &format!("chmod 600 {secret}")]);
        }
        set(0o400);
        let run = group.theta(arguments);
        assert!(run.code != 2, "{secret}: {run:?}");
    }
}

#[test]
fn a_coin_has_a_name_and_its_proof_may_be_given_in_digits() {
    let group = Group::shared();
    group.theta(&["coin", ""]).fails(2, &["a coin needs a name"]);
    let approve = ["approve", "--as", "x", "--operation", "flip-coin", "--key", "coin", "--coin", "", "--yes"];
    group.theta(&["approver", "new", "--name", "coiner", "-o", "x"]).ok();
    group.theta(&approve).fails(2, &["a coin needs a name"]);

    let coin = group.theta(&["coin", "digits", "--json"]).ok().json();
    let (value, proof) = (coin["value"].as_str().unwrap(), coin["proof"].as_str().unwrap());
    group.theta(&["verify-coin", "digits", value, "--proof", proof]).ok();
    group.theta(&["verify-coin", "other", value, "--proof", proof]).fails(1, &["not the coin"]);
    group.theta(&["verify-coin", "digits", value, "--proof", "no.proof"]).fails(2, &["cannot read no.proof"]);
    let to_stdout = group.theta(&["coin", "digits", "--proof", "-"]).ok().stdout;
    assert!(!group.path().join("-").exists() && to_stdout.len() > 64);
}
